import { type AnyMachineSnapshot, initialTransition, transition } from 'xstate';
import { ActorSystem, defineActor, recover } from '../src/core/actors/index.ts';
import { systemClock } from '../src/core/clock.ts';
import { SqliteLog, SqliteReader } from '../src/core/log/index.ts';
import { verifyLog } from '../src/core/replay/index.ts';
import { reconciler } from '../src/machines/reconciler.ts';
import { type Benchmark, fastest, perSecond, withFolder } from './measure.ts';

const EVENTS = 50_000;
const LEGS = 50;
const ADDRESS = 'fd5e:21aa:90c4:10::1/64';
const leg = defineActor({
  type: 'router.reconciler',
  machine: reconciler,
  version: 1,
  input: (key) => ({ intf: key, label: key, address: ADDRESS }),
});

/** What a leg lives through when an app save drops its address: heard, settled, read, added, verified, looked again. */
const STORY = [
  { type: 'CHANGED' },
  { type: 'xstate.after.settle.reconciler.settling' },
  { type: 'LEG_READ', ncid: '4be19c02d7a83f5516e1795200000123', addresses: [] },
  { type: 'ADDED', ncid: '7c1a9c02d7a83f5516e1795200000456' },
  { type: 'LEG_READ', ncid: '7c1a9c02d7a83f5516e1795200000456', addresses: [ADDRESS] },
  { type: 'xstate.after.secondLook.reconciler.checking' },
  { type: 'LEG_READ', ncid: '7c1a9c02d7a83f5516e1795200000456', addresses: [ADDRESS] },
] as const;

function event(index: number): { readonly type: string } {
  return STORY[Math.floor(index / LEGS) % STORY.length] ?? STORY[0];
}

async function write(dir: string): Promise<void> {
  const log = new SqliteLog({ dataDir: dir });
  const actors = new ActorSystem(log, systemClock, { seq: 0, at: 0 }, () => {});
  actors.register(leg);
  for (let index = 0; index < EVENTS; index += 1) {
    actors.send(`router.reconciler/eth1.${index % LEGS}`, event(index));
    if (index % 2_000 === 0) await log.whenDurable(log.lastSeq());
  }
  await log.close();
}

/** The least that a replay must do: the same events through XState's public, pure function. */
async function bareLoop(): Promise<number> {
  const snapshots: AnyMachineSnapshot[] = [];
  for (let key = 0; key < LEGS; key += 1)
    snapshots.push(initialTransition(reconciler, leg.input?.(`eth1.${key}`) as never)[0]);
  const started = performance.now();
  for (let index = 0; index < EVENTS; index += 1) {
    const key = index % LEGS;
    snapshots[key] = transition(reconciler, snapshots[key] as never, event(index) as never)[0];
  }
  return EVENTS / ((performance.now() - started) / 1_000);
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
  summary: 'replay verify, chain included, and recovery, against a bare loop over the public pure transition',
  run: () =>
    withFolder(async (dir) => {
      await write(dir);
      const { verified, folded, bare } = await fastest(4, {
        verified: () => verify(dir),
        bare: bareLoop,
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
      ];
    }),
};
