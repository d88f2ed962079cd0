import { type AnyMachineSnapshot, initialTransition, transition } from 'xstate';
import { recover } from '../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../src/core/kernel/replay/verify-log.ts';
import { leg as reconciler } from '../src/machines/reconciler/leg.ts';
import { type Benchmark, fastest, perSecond, withFolder } from './measure.ts';
import { largeLog } from './replay/large.ts';
import { event, LEGS, leg, writeLog } from './replay/log.ts';

const EVENTS = 50_000;

/** The least that a replay must do: the same events through XState's public, pure function. */
export async function bareLoop(clock = wall): Promise<number> {
  const snapshots: AnyMachineSnapshot[] = [];
  for (let key = 0; key < LEGS; key += 1)
    snapshots.push(initialTransition(reconciler, leg.input?.(`eth1.${key}`) as never)[0]);
  const seconds = clock();
  for (let index = 0; index < EVENTS; index += 1) {
    const key = index % LEGS;
    snapshots[key] = transition(reconciler, snapshots[key] as never, event(index) as never)[0];
  }
  return EVENTS / seconds();
}

/** @returns tells the seconds since it was made */
function wall(): () => number {
  const started = performance.now();
  return () => (performance.now() - started) / 1_000;
}

/** The same in processor time, which other work on the machine does not stretch. */
function processor(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
}

async function verify(dir: string): Promise<number> {
  const reader = new SqliteReader(dir);
  const started = performance.now();
  const report = verifyLog(reader, new Map([[leg.type, leg]]));
  const rate = report.records / ((performance.now() - started) / 1_000);
  if (report.divergence) throw new Error(`diverged at ${report.divergence.record.seq}`);
  reader.close();
  return rate;
}

async function fold(dir: string): Promise<number> {
  const reader = new SqliteReader(dir);
  const started = performance.now();
  const { newest } = recover(reader);
  const rate = newest.seq / ((performance.now() - started) / 1_000);
  reader.close();
  return rate;
}

export const replayBenchmark: Benchmark = {
  name: 'replay',
  summary:
    'replay verify, chain included, and recovery, against a bare loop over the public pure transition; a large log verified, looked into, exported and imported',
  run: () =>
    withFolder(async (dir) => {
      await writeLog(dir, EVENTS);
      const { verified, folded, bare } = await fastest(3, {
        verified: () => verify(dir),
        bare: () => bareLoop(),
        folded: () => fold(dir),
      });
      const baseline = `${perSecond(bare)} bare transition`;
      return [
        {
          what: 'replay verify',
          ours: perSecond(verified),
          baseline,
          ratio: verified / bare,
          target: '≥ 0.85',
          met: verified / bare >= 0.85,
        },
        {
          what: 'recovery at start',
          ours: perSecond(folded),
          baseline,
          ratio: folded / bare,
        },
        ...(await largeLog(() => bareLoop(processor))),
      ];
    }),
};
