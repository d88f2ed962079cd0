import { type ActorState, applyRecord } from '../../src/core/kernel/actors/transition.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { openLogKey } from '../../src/core/kernel/log/signing.ts';
import { SqliteLog } from '../../src/core/kernel/log/sqlite-log.ts';
import type { LogStreams } from '../../src/plugins/cluster/mirror/incarnations.ts';
import { Outbox } from '../../src/plugins/cluster/mirror/outbox.ts';
import type { OutboxOptions } from '../../src/plugins/cluster/mirror/outbox-options.ts';
import { ClusterPosition } from '../../src/plugins/cluster/mirror/position.ts';
import type { NatsLink } from '../../src/plugins/cluster/nats/link.ts';
import { silent } from './cluster.ts';
import { doorRecord } from './plain-log.ts';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';

export const CLUSTER = 'tests';

export function streamsOf(link: NatsLink): LogStreams {
  return { link, cluster: CLUSTER, clock: systemClock, logger: silent };
}

/** What an outbox told. */
interface OutboxReports {
  readonly fences: Parameters<OutboxOptions['onFenced']>[0][];
  readonly orphans: Parameters<OutboxOptions['onOrphaned']>[0][];
  readonly incarnations: Parameters<OutboxOptions['onIncarnation']>[0][];
  readonly troubles: (string | undefined)[];
}

export interface HostWish extends Partial<OutboxOptions> {
  /** A folder with a log; a new one unless set. */
  readonly dataDir?: string;
}

/** A host of a test: its log, and the outbox that copies it. The singleton `doors` has the actors of `test.door`. */
export class MirroredHost {
  readonly dataDir: string;
  readonly log: SqliteLog;
  readonly outbox: Outbox;
  readonly told: OutboxReports = { fences: [], orphans: [], incarnations: [], troubles: [] };
  readonly states = new Map<string, ActorState>();
  readonly #position: ClusterPosition;
  #isOpen = true;

  constructor(t: Scope, link: NatsLink, wish: HostWish = {}) {
    this.dataDir = wish.dataDir ?? tempDir(t);
    this.log = new SqliteLog({ dataDir: this.dataDir, signEvery: 100 });
    this.#position = ClusterPosition.open(this.dataDir, systemClock, (error) => t.log(error));
    const { told } = this;
    this.outbox = new Outbox({
      ...{ link, cluster: CLUSTER, host: 'one', clock: systemClock, logger: silent, log: this.log },
      ...{ position: this.#position, key: openLogKey(this.dataDir).text, largest: 900_000 },
      limits: { maxBytes: 256 * 1024 * 1024, replicas: 1 },
      states: () => ({
        seq: this.log.lastSeq(),
        states: [...this.states.values()].map((state) => JSON.stringify(state)),
      }),
      nameIsOurs: async () => {},
      typesOf: () => ['test.door'],
      begunBy: () => undefined,
      onFenced: (fence) => void told.fences.push(fence),
      onOrphaned: (branch) => void told.orphans.push(branch),
      onIncarnation: (made) => void told.incarnations.push(made),
      onTrouble: (error) => void told.troubles.push(error?.message),
      ...wish,
      dataDir: this.dataDir,
    });
    t.teardown(() => this.stop());
    this.outbox.start();
  }

  /** Appends records of doors, and waits until they are durable here. @returns the newest */
  async append(count: number, more: Partial<LogRecord> = {}): Promise<number> {
    for (let index = 0; index < count; index += 1) {
      const record = doorRecord(this.log.lastSeq() + 1, more);
      this.states.set(record.actor, applyRecord(this.states.get(record.actor), record));
      this.log.append(record, { durability: 'batched' });
      if (index % 2_000 === 1_999) await this.log.whenDurable(record.seq);
    }
    await this.log.whenDurable(this.log.lastSeq());
    return this.log.lastSeq();
  }

  /** Appends records, and waits until they are on the stream. */
  async mirror(count: number, more: Partial<LogRecord> = {}): Promise<number> {
    const seq = await this.append(count, more);
    await this.outbox.mirrored(seq);
    return seq;
  }

  async stop(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.outbox.stop();
    await this.#position.close();
    await this.log.close();
  }
}
