import test from 'ava';
import fc from 'fast-check';
import { createMachine } from 'xstate';
import { whatIfLines } from '../../../../src/cli/replay/what-if-text.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { type Difference, Findings } from '../../../../src/core/kernel/replay/findings.ts';
import { verifyLog } from '../../../../src/core/kernel/replay/verify-log.ts';
import { openBench } from '../../../support/actors.ts';
import { door, doorMachine } from '../../../support/door.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';

const effects = ['bell.ring', 'lamp.on'].map((type) => ({
  type,
  handler: () => undefined,
  onRecovery: 'retry' as const,
}));

async function story(dir: string): Promise<void> {
  const bench = await openBench(dir, [door], effects);
  bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  await bench.clock.advance(1_000);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'stranger' });
  await bench.settled();
  await bench.close();
}

test('[C4] a log replays to the same states and effects, record by record', async (t) => {
  const dir = tempDir(t);
  await story(dir);
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  const report = verifyLog(reader, new Map([[door.type, door]]));
  t.like(report, { records: reader.lastSeq(), actors: 1, notCompared: [], divergence: undefined });
});

const edits = {
  'a guard': doorMachine.provide({ guards: { known: () => true } }),
  'an effect left out': doorMachine.provide({ delays: { closing: 2_000 } }),
};
for (const [name, machine] of Object.entries(edits)) {
  test(`[C4] a machine edited in ${name} diverges at the first record it decides otherwise, with expected and got`, async (t) => {
    const dir = tempDir(t);
    await story(dir);
    const reader = new SqliteReader(dir);
    t.teardown(() => reader.close());
    const { divergence } = verifyLog(reader, new Map([[door.type, { ...door, machine }]]));
    t.truthy(divergence);
    t.is(divergence?.record.event.by, name === 'a guard' ? 'stranger' : 'ann');
    t.notDeepEqual(divergence?.expected, divergence?.got);
    t.regex(
      divergence?.hint ?? '',
      name === 'a guard' ? /decides differently|no longer reacts|guard/ : /other effects/,
    );
  });
}

test('[C4] records of an actor type that nobody registers are carried along and counted', async (t) => {
  const dir = tempDir(t);
  await story(dir);
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  t.like(verifyLog(reader, new Map()), {
    notCompared: [{ type: 'test.door', version: 1, records: reader.lastSeq() }],
    divergence: undefined,
  });
});

const events = fc.oneof(
  fc.record({ type: fc.constant('OPEN'), by: fc.constantFrom('ann', 'bob', 'stranger') }),
  fc.record({
    type: fc.constantFrom('CLOSE', 'KNOCK', 'BREAK', 'NEVER_HEARD_OF', 'xstate.after.closing.door.open'),
  }),
  fc.record({ type: fc.constant('WAIT'), ms: fc.integer({ min: 0, max: 2_000 }) }),
);

test('[C4] whatever happens to some actors, the log folds to their live states and replays clean', async (t) => {
  t.timeout(180_000);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), events), { maxLength: 40 }),
      async (steps) => {
        const dir = tempDir(t);
        const bench = await openBench(dir, [door], effects);
        for (const [key, event] of steps) {
          if (event.type === 'WAIT') {
            await bench.settled();
            await bench.clock.advance((event as unknown as { ms: number }).ms);
          } else bench.actors.deliver(`test.door/${key}`, event);
        }
        await bench.settled();
        const live = structuredClone(bench.actors.states());
        await bench.close();
        const reader = new SqliteReader(dir);
        try {
          t.deepEqual([...recover(reader).states.values()], live as never);
          t.is(verifyLog(reader, new Map([[door.type, door]])).divergence, undefined);
        } finally {
          reader.close();
        }
      },
    ),
    { numRuns: runs(25) },
  );
});

for (const [what, machine, hint] of [
  [
    'an event that the machine names nowhere',
    createMachine({
      id: 'door',
      initial: 'closed',
      context: { opened: 0, closeAfterMs: 1_000 },
      states: { closed: {} },
    }),
    /^OPEN is an unknown event: .*; if that is meant, raise its version and keep version 1 under `earlier`$/,
  ],
  [
    'a guard',
    doorMachine.provide({ guards: { known: () => false } }),
    /^the machine no longer reacts to OPEN in this state/,
  ],
  [
    'a machine that throws',
    doorMachine.provide({
      guards: {
        known: () => {
          throw new Error('no');
        },
      },
    }),
    /^the machine throws now: /,
  ],
] as const) {
  test(`[C4] the hint of a divergence tells of ${what}`, async (t) => {
    const dir = tempDir(t);
    const bench = await openBench(dir, [door], effects);
    bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
    await bench.settled();
    await bench.close();
    const reader = new SqliteReader(dir);
    t.teardown(() => reader.close());
    const { divergence } = verifyLog(reader, new Map([[door.type, { ...door, machine }]]));
    t.is(divergence?.record.event.type, 'OPEN');
    t.regex(divergence?.hint ?? '', hint);
  });
}

test('[C8] what is found beyond those listed is counted by its kind', (t) => {
  const findings = new Findings();
  const decision = (calls: number, value = 'active') =>
    ({ from: 'active', to: { value, context: { calls } }, effects: [] }) as unknown as Difference['got'];
  const differing = {
    seq: 1,
    at: 0,
    actor: 'test.door/1',
    event: { type: 'KNOCK' },
    kind: 'decided',
  } as const;
  const counted = { ...differing, expected: decision(1), got: decision(2) } as Difference;
  for (let of = 0; of < 5_002; of += 1) findings.differ(counted);
  t.deepEqual(findings.more, { differences: 0, remembered: 2, untrusted: 0 });
  const otherwise = { ...differing, expected: decision(1), got: decision(1, 'revoked') } as Difference;
  for (let of = 0; of < 5_001; of += 1) findings.differ(otherwise);
  t.deepEqual(findings.more, { differences: 1, remembered: 2, untrusted: 0 });
  t.is(findings.differences.length, 5_000);

  const { differences, remembered, untrusted, more } = findings;
  const answer = {
    unknown: [],
    records: 10_003,
    differences,
    remembered,
    untrusted,
    more,
    unanswered: [],
    absent: [],
  };
  const terminal = { paint: (_style: unknown, text: string) => text } as never;
  const leftOut = (limit: number) =>
    whatIfLines(answer, limit, terminal).filter((line) => / more[;,]/.test(line));
  t.deepEqual(leftOut(10), ['  (4991 more; --limit 0 shows all but 1 of them)']);
  t.deepEqual(leftOut(Number.POSITIVE_INFINITY), ['  (1 more, which are counted and not listed)']);
});
