import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { CHAIN_START } from '../../src/core/kernel/log/chain-hash.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { type ChainPlace, nextBatch } from '../../src/plugins/cluster/mirror/batch.ts';
import type { NatsLink } from '../../src/plugins/cluster/nats/link.ts';
import { openLink } from '../../test/support/cluster.ts';
import { MirroredHost } from '../../test/support/mirrored-host.ts';
import { appendRecords, doorRecord } from '../../test/support/plain-log.ts';
import type { Scope } from '../../test/support/scope.ts';
import { median, perSecond, quantile, type Result } from '../measure.ts';

export interface MirrorWish {
  readonly dir: string;
  readonly servers: string;
  /** Copies of each stream. */
  readonly replicas: 1 | 3;
  readonly records: number;
  /** How long records are appended at an even rate, milliseconds. */
  readonly evenMs: number;
}

const ROUNDS = 3;
const RATE = 20_000;
const EVEN_RATE = 1_000;
const LAG_MS = 100;
/** As many messages as the mirror has under way at most. */
const UNDER_WAY = 64;
const LARGEST_BODY = 900_000;
const MOST_BYTES = 256 * 1024 * 1024;
/** With it a record has some 400 bytes of JSON, as one of the product. */
const NOTE = 'n'.repeat(150);

/** @returns what a row says of the servers when they are not one */
export function overServers(replicas: 1 | 3): string {
  return replicas === 1 ? '' : `, over ${replicas} servers with a copy each`;
}

function record(seq: number) {
  return doorRecord(seq, { to: { value: 'closed', context: { knocks: seq, note: NOTE } } });
}

/** A log that was written without NATS goes to its stream; then one that grows at an even rate. */
export async function mirrorRows(scope: Scope, wish: MirrorWish): Promise<Result[]> {
  const link = await openLink(scope, wish.servers);
  return [await catchingUp(scope, link, wish), await lag(scope, link, wish)];
}

async function catchingUp(
  scope: Scope,
  link: NatsLink,
  { dir, servers, replicas, records }: MirrorWish,
): Promise<Result> {
  const dataDir = join(dir, `mirror-${replicas}`);
  await appendRecords(
    dataDir,
    Array.from({ length: records }, (_, index) => record(index + 1)),
  );
  const bodies = bodiesOf(dataDir, records);
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rmSync(join(dataDir, 'cluster-position.json'), { force: true });
    const host = new MirroredHost(scope, link, {
      dataDir,
      host: `round${round}`,
      limits: { maxBytes: MOST_BYTES, replicas },
    });
    const from = performance.now();
    await host.outbox.mirrored(records);
    ours.push((records * 1_000) / (performance.now() - from));
    await host.stop();
    bare.push(await bareRate({ servers, replicas, records }, bodies, round));
  }
  const [rate, baseline] = [median(ours), median(bare)];
  return {
    what: `mirror catching up a log of ${records.toLocaleString('en')} records${overServers(replicas)}`,
    ours: perSecond(rate),
    baseline: `${perSecond(baseline)} the same messages by the bare client`,
    ratio: rate / baseline,
    target: `≥ ${RATE.toLocaleString('en')}/s`,
    met: rate >= RATE,
  };
}

/** What the mirror sends of a log, less the first message. */
function bodiesOf(dataDir: string, records: number): Uint8Array[] {
  const reader = new SqliteReader(dataDir);
  const bodies: Uint8Array[] = [];
  for (let end: ChainPlace = { seq: 0, hash: CHAIN_START }; end.seq < records; ) {
    const batch = nextBatch(reader, end, records, LARGEST_BODY);
    if (!batch) break;
    bodies.push(...batch.messages.map(({ body }) => body));
    end = batch.end;
  }
  reader.close();
  return bodies;
}

/** Without codes, expectations, or a log to be read. @returns records a second */
async function bareRate(
  { servers, replicas, records }: Pick<MirrorWish, 'servers' | 'replicas' | 'records'>,
  bodies: readonly Uint8Array[],
  round: number,
): Promise<number> {
  const connection = await connect({ servers: servers.split(',') });
  try {
    const manager = await jetstreamManager(connection);
    const subject = `bare.${round}`;
    await manager.streams.add({
      ...{ name: `BARE_${round}`, subjects: [subject], storage: 'file', num_replicas: replicas },
    });
    const stream = jetstream(connection);
    const open = new Set<Promise<void>>();
    const from = performance.now();
    for (const body of bodies) {
      while (open.size >= UNDER_WAY) await Promise.race(open);
      const sent: Promise<void> = stream.publish(subject, body).then(() => void open.delete(sent));
      open.add(sent);
    }
    await Promise.all(open);
    return (records * 1_000) / (performance.now() - from);
  } finally {
    await connection.close();
  }
}

async function lag(scope: Scope, link: NatsLink, { dir, replicas, evenMs }: MirrorWish): Promise<Result> {
  const dataDir = join(dir, `even-${replicas}`);
  const host = new MirroredHost(scope, link, {
    ...{ dataDir, host: 'even', limits: { maxBytes: MOST_BYTES, replicas } },
  });
  await host.mirror(3);
  const at = { appended: new Map<number, number>(), durable: new Map<number, number>() };
  /** Milliseconds of each record: until it is durable, and from then on until it is on the stream. */
  const waits = { durable: [] as number[], mirrored: [] as number[] };
  let [durable, mirrored] = [3, 3];
  host.log.onDurable((seq) => {
    const now = performance.now();
    for (; durable < seq; durable += 1) {
      at.durable.set(durable + 1, now);
      waits.durable.push(now - (at.appended.get(durable + 1) ?? now));
    }
  });
  const from = performance.now();
  const end = from + evenMs;
  for (let now = from; now < end || mirrored < host.log.lastSeq(); now = performance.now()) {
    const due = 3 + Math.floor(((Math.min(now, end) - from) * EVEN_RATE) / 1_000);
    while (host.log.lastSeq() < due) {
      const next = record(host.log.lastSeq() + 1);
      at.appended.set(next.seq, performance.now());
      host.log.append(next, { durability: 'batched' });
    }
    await sleep(1);
    const seen = performance.now();
    for (const { seq } = host.outbox.position; mirrored < seq; mirrored += 1)
      waits.mirrored.push(seen - (at.durable.get(mirrored + 1) ?? seen));
  }
  await host.stop();
  const ours = quantile(waits.mirrored, 0.99);
  const own = quantile(waits.durable, 0.99);
  return {
    what: `${EVEN_RATE.toLocaleString('en')} records/s, from the own disk to the stream${overServers(replicas)}, p99 (p50 ${median(waits.mirrored).toFixed(0)} ms)`,
    ours: `${ours.toFixed(0)} ms`,
    baseline: `${own.toFixed(0)} ms from the append to the own disk`,
    ratio: ours / own,
    target: `< ${LAG_MS} ms`,
    met: ours < LAG_MS,
  };
}
