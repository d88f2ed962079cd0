import type { ExecutionContext } from 'ava';
import { Bus } from '../../src/bus/bus.ts';
import { createLogger, type Logger } from '../../src/core/host/logging/logger.ts';
import {
  archiveDeleted,
  archiveDeletedRoute,
  recordsArchived,
  recordsArchivedRoute,
  retentionActor,
} from '../../src/core/host/retention/actor.ts';
import { AutomaticRetention } from '../../src/core/host/retention/automatic.ts';
import type { ArchiveStep } from '../../src/core/host/retention/machine.ts';
import type { RetentionSettings } from '../../src/core/host/retention/settings.ts';
import { newCorrelation } from '../../src/core/kernel/clock.ts';
import type { EventLog } from '../../src/core/kernel/log/event-log.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { type Bench, openBench } from './actors.ts';
import { call } from './cli.ts';
import { door } from './door.ts';
import { doorsConfig } from './doors-config.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Doors that close by themselves after a second; the one called `stays` after a thousand days. */
export const patientDoor = {
  ...door,
  input: (key: string) => ({ closeAfterMs: key === 'stays' ? 1_000 * 86_400_000 : 1_000 }),
};

type KeptStep = { readonly type: 'ARCHIVED' | 'ARCHIVE_DELETED' } & ArchiveStep;

/** A log with doors, whose oldest records are archived as in a runtime. */
export interface KeptBench {
  readonly bench: Bench;
  readonly retention: AutomaticRetention;
  /** What it recorded since it was opened. */
  readonly steps: readonly KeptStep[];
  close(): Promise<void>;
}

interface KeptOptions {
  /** Whether it looks by itself, every minute; otherwise only `run` looks. */
  readonly scheduled?: boolean;
  readonly wrap?: (log: EventLog) => EventLog;
  /** On the disk, for records that are needed elsewhere to be kept. */
  readonly leastFreeBytes?: number;
  /** Writes nothing unless given. */
  readonly logger?: Logger;
}

/** So much of the live log goes into one archive, bytes. */
const ARCHIVE_BYTES = 120_000;

export async function openKept(
  dataDir: string,
  settings: RetentionSettings,
  clock: VirtualClock,
  {
    scheduled = false,
    wrap = (log) => log,
    leastFreeBytes = 0,
    logger = createLogger({ level: 'silent' }),
  }: KeptOptions = {},
): Promise<KeptBench> {
  const bench = await openBench(dataDir, [patientDoor, retentionActor], [], clock);
  const bus = new Bus(newCorrelation);
  const steps: KeptStep[] = [];
  for (const { topic, to, map } of [recordsArchivedRoute, archiveDeletedRoute]) {
    bus.subscribe(topic, 'core', (envelope) => {
      for (const { key, event } of map(envelope)) bench.actors.deliver(`${to}/${key}`, event);
    });
  }
  bus.subscribe(recordsArchived, 'core', ({ payload }) => steps.push({ type: 'ARCHIVED', ...payload }));
  bus.subscribe(archiveDeleted, 'core', ({ payload }) => steps.push({ type: 'ARCHIVE_DELETED', ...payload }));
  const { log, actors } = bench;
  const unscheduled = { now: () => clock.now(), monotonic: () => clock.monotonic(), after: () => () => {} };
  const services = {
    log: wrap(log),
    bus,
    actors,
    clock: scheduled ? clock : unscheduled,
    logger,
    dataDir,
  };
  const retention = new AutomaticRetention(services, settings, ARCHIVE_BYTES, leastFreeBytes);
  return {
    bench,
    retention,
    steps,
    async close() {
      await retention.stop();
      await bench.close();
    },
  };
}

/** Limits that a test reaches soon. */
export const KEPT = (folder: string) => ({
  folder,
  keepBytes: 400_000,
  olderThanMs: 90 * 86_400_000,
  keepArchiveBytes: 25_000,
});

/** A day on which doors open and close: some records for each time. */
export async function live(bench: KeptBench['bench'], times: number, ms: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    bench.actors.deliver(`test.door/${time % 7}`, { type: 'OPEN', by: `who ${time}` });
    bench.actors.deliver(`test.door/${time % 7}`, { type: 'CLOSE' });
    if (time % 200 === 199) await bench.settled();
    bench.clock.jump(Math.floor(ms / times));
  }
  await bench.settled();
}

export function sizeOf(dir: string): { used: number; first: number; oldest: number } {
  const reader = new SqliteReader(dir);
  try {
    const first = reader.firstSeq();
    return { used: reader.usedBytes(), first, oldest: reader.record(first).at };
  } finally {
    reader.close();
  }
}

/** What the log says of its own retention. */
export async function stepsOf(bench: KeptBench['bench']) {
  const records = await bench.records();
  return records
    .filter(({ actor, event }) => actor === 'runtime.retention/host' && event.type !== 'init')
    .map(({ event }) => event as { type: string; file: string; from: number; to: number; bytes: number });
}

/** All records, from archives and folder together, chained and decided the same again. */
export async function replays(t: ExecutionContext, dir: string, archives: readonly string[]): Promise<void> {
  doorsConfig(dir);
  for (const words of [
    ['replay', 'verify'],
    ['log', 'verify'],
  ]) {
    const { code, err, out } = await call([...words, ...archives, dir], { cwd: dir });
    t.is(code, 0, `${words}: ${err}${out}`);
  }
}
