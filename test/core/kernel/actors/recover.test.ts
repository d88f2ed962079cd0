import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { type ActorState, applyRecord } from '../../../../src/core/kernel/actors/transition.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { type Bench, openBench } from '../../../support/actors.ts';
import { door } from '../../../support/door.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const effects = ['bell.ring', 'lamp.on'].map((type) => ({
  type,
  handler: () => undefined,
  onRecovery: 'retry' as const,
}));

type Step =
  | {
      readonly do: 'send';
      readonly key: string;
      readonly event: { readonly type: string; readonly by?: string };
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'save' | 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      event: fc.oneof(
        fc.record({ type: fc.constant('OPEN'), by: fc.constantFrom('ann', 'bob', 'stranger') }),
        fc.record({ type: fc.constantFrom('CLOSE', 'KNOCK', 'BREAK', 'NEVER_HEARD_OF') }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 1_500 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('save' as const, 'restart' as const) }) },
);

async function save({ actors, log }: Bench): Promise<void> {
  const states = actors.takeDirty().map((state) => ({ actor: state.ref, body: JSON.stringify(state) }));
  await log.saveSnapshots(states, () => []);
}

/** The states by every record from the first, without any snapshot. */
async function foldAll(dir: string): Promise<ActorState[]> {
  const reader = new SqliteReader(dir);
  const states = new Map<string, ActorState>();
  for await (const record of reader.read())
    states.set(record.actor, applyRecord(states.get(record.actor), record));
  reader.close();
  return [...states.values()];
}

const byRef = (a: { ref: string }, b: { ref: string }) => a.ref.localeCompare(b.ref);

async function live(t: ExecutionContext, steps: readonly Step[]): Promise<void> {
  const dir = tempDir(t);
  const clock = new VirtualClock(1_000);
  let bench = await openBench(dir, [door], effects, clock);
  for (const one of steps) {
    switch (one.do) {
      case 'send':
        bench.actors.deliver(`test.door/${one.key}`, one.event);
        break;
      case 'wait':
        await bench.settled();
        await clock.advance(one.ms);
        break;
      case 'save':
        await save(bench);
        break;
      case 'restart':
        await bench.close();
        bench = await openBench(dir, [door], effects, clock);
        await clock.advance(0);
        break;
    }
  }
  await bench.settled();
  const states = structuredClone(bench.actors.states()).sort(byRef);
  await bench.close();
  const reader = new SqliteReader(dir);
  const recovered = [...recover(reader).states.values()].sort(byRef);
  reader.close();
  t.deepEqual(recovered, states as never, 'snapshots and the records since say what lived');
  t.deepEqual((await foldAll(dir)).sort(byRef), states as never, 'and so do all records from the first');
}

test('[C5] with snapshots and restarts at any point, the log gives back exactly the actors that lived', async (t) => {
  t.timeout(180_000);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) => live(t, steps)),
    { numRuns: runs(25) },
  );
});
