import test from 'ava';
import { assign, setup } from 'xstate';
import type { ActorDefinition } from '../../../../src/core/kernel/actors/definition.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { alterEvent } from '../../../../src/core/kernel/replay/changes.ts';
import { verifyLog } from '../../../../src/core/kernel/replay/verify-log.ts';
import { whatIfSteps } from '../../../../src/core/kernel/replay/what-if.ts';
import { openBench } from '../../../support/actors.ts';
import { call } from '../../../support/cli.ts';
import { door, doorMachine } from '../../../support/door.ts';
import { doorsConfig } from '../../../support/doors-config.ts';
import { tempDir } from '../../../support/temp.ts';

/** The door as a later release has it: the state `closed` is called `shut`, `opened` is called `count`. */
const laterMachine = setup({
  types: {} as { context: { count: number; by?: string }; events: { type: 'PUSH'; by: string } },
  delays: { closing: 500 },
}).createMachine({
  id: 'door',
  context: { count: 0 },
  initial: 'shut',
  states: {
    shut: {
      on: {
        PUSH: {
          target: 'ajar',
          actions: assign({ count: ({ context }) => context.count + 1, by: ({ event }) => event.by }),
        },
      },
    },
    ajar: { after: { closing: 'shut' } },
  },
});
const later: ActorDefinition & { owner: string } = {
  ...door,
  owner: 'doors',
  machine: laterMachine,
  version: 2,
  migrate: ({ value, context: { opened = 0, by } }, from) =>
    from === 1
      ? {
          value: value === 'open' ? 'ajar' : 'shut',
          context: { count: opened, ...(by !== undefined && { by }) },
        }
      : undefined,
};

const effects = [{ type: 'lamp.on', handler: () => undefined, onRecovery: 'retry' as const }];

/** 1 init, 2 ann opens (and the door stands open), 3 the lamp is on. */
async function first(dir: string, definition: ActorDefinition = door): Promise<void> {
  const bench = await openBench(dir, [definition], effects);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  await bench.close();
}

/** The later release takes over: 4 the migration, 5 the door falls shut, 6 bob pushes. */
async function second(dir: string): Promise<void> {
  const bench = await openBench(dir, [later]);
  await bench.settled();
  await bench.clock.advance(2_000);
  bench.actors.deliver('test.door/front', { type: 'PUSH', by: 'bob' });
  await bench.settled();
  await bench.close();
}

function reading(t: { teardown(work: () => void): void }, dir: string): SqliteReader {
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  return reader;
}

test('[C4,C5] a state that an older version left is migrated by a record, and its timers follow the new state', async (t) => {
  const dir = tempDir(t);
  await first(dir);
  await second(dir);
  const reader = reading(t, dir);
  const migration = reader.record(4);
  t.like(migration, { version: 2, event: { type: 'migrate', fromVersion: 1 }, from: 'open' });
  t.deepEqual(migration.to as unknown, {
    value: 'ajar',
    context: { opened: null, closeAfterMs: null, count: 1 },
  });
  t.deepEqual(
    migration.effects.map(({ type, params }) => [type, (params as { timer: string }).timer]),
    [
      ['timer.cancel', 'xstate.after.closing.door.open'],
      ['timer.start', 'xstate.after.closing.door.ajar'],
    ],
  );
  t.like(recover(reader).states.get('test.door/front'), {
    version: 2,
    value: 'ajar',
    context: { count: 2, by: 'bob' },
  });
});

for (const [name, definition, reason] of [
  ['without a migrate', { ...door, version: 2 }, /version 2 .* by version 1: its definition has no migrate/],
  [
    'whose migrate does not know the version',
    { ...later, migrate: () => undefined },
    /migrate does not take that version/,
  ],
  [
    'whose migrate throws',
    {
      ...later,
      migrate: () => {
        throw new Error('no key');
      },
    },
    /its migrate fails: no key/,
  ],
  [
    'whose migrate leads nowhere',
    { ...later, migrate: () => ({ value: 'gone', context: {} }) },
    /migrate gives no state of the machine/,
  ],
  ['that is older than the log', { ...door, version: 0 }, /a later release wrote it/],
] as const) {
  test(`[C4] a definition ${name} is refused with plugin, type, actor and both versions, and the log stays`, async (t) => {
    const dir = tempDir(t);
    await first(dir);
    const error = await t.throwsAsync(() => openBench(dir, [{ ...definition, owner: 'doors' } as never]), {
      code: 'HF_MACHINE_VERSION',
    });
    t.regex(error.message, reason);
    t.regex(error.message, /Plugin doors .* test\.door.* test\.door\/front/);
    t.is(reading(t, dir).lastSeq(), 3);
  });
}

test('[C4] replay compares records of an older version by the machine that the definition keeps', async (t) => {
  const dir = tempDir(t);
  await first(dir);
  await second(dir);
  const reader = reading(t, dir);
  const kept = { ...later, earlier: { 1: doorMachine } };
  t.like(verifyLog(reader, new Map([[door.type, kept]])), {
    records: 6,
    notCompared: [],
    divergence: undefined,
  });
  const edited = { ...kept, earlier: { 1: doorMachine.provide({ delays: { closing: 7 } }) } };
  t.is(verifyLog(reader, new Map([[door.type, edited]])).divergence?.record.seq, 2);
  const otherwise = { ...kept, migrate: () => ({ value: 'shut', context: { count: 1 } }) };
  t.is(verifyLog(reader, new Map([[door.type, otherwise]])).divergence?.record.seq, 4);
});

test('[C4] without it they are counted apart, and what today’s version recorded is compared all the same', async (t) => {
  const dir = tempDir(t);
  await first(dir);
  await second(dir);
  const reader = reading(t, dir);
  t.like(verifyLog(reader, new Map([[door.type, later]])), {
    notCompared: [{ type: 'test.door', version: 1, current: 2, records: 3 }],
    divergence: undefined,
  });
  const machine = laterMachine.provide({ delays: { closing: 501 } });
  t.is(verifyLog(reader, new Map([[door.type, { ...later, machine }]])).divergence?.record.seq, 4);
});

test('[C4] replay verify says plainly what was not compared, and --strict exits 1', async (t) => {
  const dir = tempDir(t);
  await first(dir);
  doorsConfig(dir, 'door = { ...original, version: 2 };');
  const verify = (...argv: string[]) => call(['replay', 'verify', dir, ...argv], { cwd: dir });
  const { code, out } = await verify();
  t.is(code, 0);
  t.regex(out, /^No record could be compared\.\n3 records of 1 actors/);
  t.regex(
    out,
    /3 records of test\.door were not compared: they were made by version 1 .*, and only version 2 is available\./,
  );
  const strict = await verify('--strict');
  t.is(strict.code, 1);
  t.regex(strict.err, /^HF_REPLAY_NOT_COMPARED\n {2}3 records were not compared/);
  t.like(JSON.parse((await verify('--strict', '--json')).out), { ok: false, chain: 'ok' });
});

test('[C8] what-if decides what older versions recorded by the kept machine, else by today’s through upcast', async (t) => {
  const dir = tempDir(t);
  await first(dir);
  await second(dir);
  const reader = reading(t, dir);
  const run = (definition: ActorDefinition, by: string) => {
    const steps = whatIfSteps(reader, new Map([[door.type, definition]]), [alterEvent({ by }, 2)]);
    for (;;) {
      const { done, value } = steps.next();
      if (!done) continue;
      const all = [...value.differences, ...value.remembered].sort((a, b) => a.seq - b.seq);
      return all.map(({ seq, got }) => [seq, got?.to.value]);
    }
  };
  t.deepEqual(run({ ...later, earlier: { 1: doorMachine } }, 'stranger'), [
    [2, 'closed'],
    [4, 'shut'],
    [5, 'shut'],
    [6, 'ajar'],
  ]);
  const upcast: ActorDefinition['upcast'] = (event) =>
    event.type === 'OPEN' ? { ...event, type: 'PUSH' } : event;
  t.is(run({ ...later, upcast }, 'stranger')[0]?.[1], 'ajar', 'today everybody may push');
});
