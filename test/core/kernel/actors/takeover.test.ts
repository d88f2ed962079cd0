import test, { type ExecutionContext } from 'ava';
import { assign, setup } from 'xstate';
import { clockActor } from '../../../../src/core/host/clock/machine.ts';
import {
  adoptionEvents,
  type Inheritance,
  newestTakeover,
} from '../../../../src/core/kernel/actors/adoption.ts';
import { type ActorDefinition, defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import type { EffectContext, EffectRegistration } from '../../../../src/core/kernel/actors/effect.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import type { ActorState } from '../../../../src/core/kernel/actors/transition.ts';
import { checkRecord, type LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { causeSteps, sentenceOf } from '../../../../src/core/kernel/replay/explain.ts';
import { verifyLog } from '../../../../src/core/kernel/replay/verify-log.ts';
import { whatIfSteps } from '../../../../src/core/kernel/replay/what-if.ts';
import { type Bench, openBench } from '../../../support/actors.ts';
import { call } from '../../../support/cli.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

// Two hosts, each with a log of its own: what one left the other goes on from.

const TYPES = ['test.door'];
const FRONT = 'test.door/front';
const BACK = 'test.door/back';
const CLOSING = 'xstate.after.closing.door.open';
const HASH = 'a'.repeat(64);
/** When the host before ended. */
const ENDED = 1_400;

/** An effect that nobody answers. */
const endless: EffectRegistration = {
  type: 'lamp.on',
  onRecovery: 'retry',
  handler: (_params, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
};

/** What a host leaves whose front door ann opened 400 ms before its end: it would fall shut after 600 ms more, and its lamp is not on yet. */
async function left(
  t: ExecutionContext,
  more: Partial<Inheritance> = {},
  keys = ['front'],
): Promise<Inheritance> {
  const bench = await openBench(tempDir(t), [door], [endless]);
  for (const key of keys) bench.actors.deliver(`test.door/${key}`, { type: 'OPEN', by: 'ann' });
  await bench.log.whenDurable(bench.log.lastSeq());
  await bench.clock.advance(400);
  const inheritance = inheritanceOf(bench, more);
  await bench.close();
  return inheritance;
}

function inheritanceOf({ actors, log }: Bench, more: Partial<Inheritance> = {}): Inheritance {
  const states = actors.states('test.door').map((state) => JSON.parse(JSON.stringify(state)) as ActorState);
  return { host: 'attic', incarnation: '1', seq: log.lastSeq(), hash: HASH, states, ...more };
}

/** The host that goes on. */
function successor(
  dir: string,
  effects: readonly EffectRegistration[] = [],
  definitions: readonly ActorDefinition[] = [door],
  at = ENDED,
): Promise<Bench> {
  return openBench(dir, definitions, effects, new VirtualClock(at), TYPES);
}

/** A handler that notes what it was called with. */
function noting(calls: EffectContext[], onRecovery: 'retry' | 'fail' = 'retry'): EffectRegistration {
  const handler = (_params: never, context: EffectContext) => {
    calls.push(context);
  };
  return { type: 'lamp.on', onRecovery, handler };
}

function read<T>(dir: string, work: (reader: SqliteReader) => T): T {
  const reader = new SqliteReader(dir);
  try {
    return work(reader);
  } finally {
    reader.close();
  }
}

const recovered = (dir: string) => read(dir, (reader) => recover(reader).states);

function replays(t: ExecutionContext, dir: string, definitions: readonly ActorDefinition[] = [door]): void {
  const byType = new Map(definitions.map((one) => [one.type, one]));
  const report = read(dir, (reader) => verifyLog(reader, byType));
  t.is(report.divergence, undefined);
  t.deepEqual(report.notCompared, []);
  const answer = read(dir, (reader) => {
    const steps = whatIfSteps(reader, byType, []);
    for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
  });
  t.deepEqual([...answer.differences, ...answer.remembered, ...answer.untrusted, ...answer.unanswered], []);
}

/** The folder of a host that was killed when so many records of another one were durable. */
async function cutAfter(t: ExecutionContext, records: readonly LogRecord[]): Promise<string> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (const record of records) log.append(record, { durability: 'sync' });
  await log.close();
  return dir;
}

test('[C13] an actor goes on from the state that another host left, by a record that names it', async (t) => {
  const inheritance = await left(t);
  const dir = tempDir(t);
  const bench = await successor(dir);
  const [state] = await bench.actors.takeUp(TYPES, inheritance);
  t.like(state, { ref: FRONT, value: 'open', context: { opened: 1, by: 'ann' } });
  t.like((await bench.records())[0], {
    ...{ seq: 1, actor: FRONT, machine: 'door', version: 1, origin: { host: 'attic', seq: inheritance.seq } },
    event: {
      type: 'adopt',
      host: 'attic',
      incarnation: '1',
      seq: inheritance.seq,
      hash: HASH,
      part: 0,
      parts: 1,
    },
    to: { value: 'open', context: { opened: 1, closeAfterMs: 1_000, by: 'ann' } },
    effects: [
      { type: 'timer.start', params: { timer: CLOSING, at: 2_000 } },
      { type: 'lamp.on', params: { by: 'ann' }, origin: 'attic:2.0' },
    ],
  });
  t.deepEqual(recovered(dir).get(FRONT), bench.actors.snapshot(FRONT));
  await bench.close();
  replays(t, dir);
});

test('[C13] a takeover replaces the state that this host had, with what was open in it', async (t) => {
  const inheritance = await left(t);
  const dir = tempDir(t);
  const first = await openBench(dir, [door], [endless], new VirtualClock(1_000));
  first.actors.deliver(FRONT, { type: 'OPEN', by: 'bob' });
  first.actors.deliver(FRONT, { type: 'OPEN', by: 'bob' });
  first.actors.deliver(FRONT, { type: 'CLOSE' });
  first.actors.deliver(FRONT, { type: 'OPEN', by: 'bob' });
  await first.log.whenDurable(first.log.lastSeq());
  await first.close();

  const bench = await successor(dir);
  const [state] = await bench.actors.takeUp(TYPES, inheritance);
  t.like(state, { value: 'open', context: { opened: 1, closeAfterMs: 1_000, by: 'ann' } });
  t.deepEqual(Object.keys(state!.effects), [`${state!.seq}.1`]);
  t.is(state!.timers[CLOSING]?.id, `${state!.seq}.0`);
  t.like((await bench.records()).at(-1), { from: 'open', to: { context: { opened: 1, by: 'ann' } } });
  t.deepEqual(recovered(dir).get(FRONT), bench.actors.snapshot(FRONT));
  await bench.close();
  replays(t, dir);
});

test('[C13,C5] an open effect runs again under the id of its first request, on the third host, too', async (t) => {
  const second = await successor(tempDir(t), [endless]);
  await second.actors.takeUp(TYPES, await left(t));
  const inheritance = inheritanceOf(second, { host: 'barn' });
  await second.close();

  const dir = tempDir(t);
  const calls: EffectContext[] = [];
  const bench = await successor(dir, [noting(calls)]);
  const states = await bench.actors.takeUp(TYPES, inheritance);
  await bench.settled();
  t.deepEqual(calls, [], 'it waits until its plugin can work');
  bench.dispatcher.leftOpen(states)();
  await bench.settled();
  t.is(calls.length, 1);
  t.like(calls[0], { id: 'attic:2.0', cause: 1, recovered: true, actor: FRONT });
  t.like((await bench.records())[1], { event: { type: 'effect.done' }, cause: 1, outcome: '1.1' });
  t.deepEqual(bench.actors.snapshot(FRONT)?.effects, {});
  await bench.close();
  replays(t, dir);
});

test('[C13,C5] an open effect that must not run twice is lost on the host that goes on', async (t) => {
  const calls: EffectContext[] = [];
  const bench = await successor(tempDir(t), [noting(calls, 'fail')]);
  bench.dispatcher.leftOpen(await bench.actors.takeUp(TYPES, await left(t)))();
  await bench.settled();
  t.deepEqual(calls, []);
  t.like((await bench.records())[1], { event: { type: 'effect.lost' }, outcome: '1.1' });
  await bench.close();
});

test('[C13] effects that are asked for after a takeover are not taken for open ones', async (t) => {
  const calls: EffectContext[] = [];
  const slow = (context: EffectContext) => {
    calls.push(context);
    return new Promise<void>((resolve) => setTimeout(resolve, 20));
  };
  const bench = await successor(tempDir(t), [
    { type: 'lamp.on', onRecovery: 'retry', handler: (_params, context) => slow(context) },
  ]);
  const taken = bench.actors.takeUp(TYPES, await left(t));
  bench.actors.deliver(BACK, { type: 'OPEN', by: 'bob' });
  bench.actors.deliver(FRONT, { type: 'CLOSE' });
  bench.actors.deliver(FRONT, { type: 'OPEN', by: 'bob' });
  bench.dispatcher.leftOpen(await taken)();
  await bench.settled();
  t.deepEqual(calls.map(({ id }) => id).sort(), ['3.0', '5.0', 'attic:2.0']);
  await bench.close();
});

test('[C13] a timer goes on with what it has left, however far the clocks of two hosts are apart', async (t) => {
  for (const aheadMs of [0, 300_000, -300_000]) {
    const dir = tempDir(t);
    const bench = await successor(dir, [], [door], 1_000_000 + aheadMs);
    const inheritance = await left(t);
    const clockAheadMs = 1_000_000 + aheadMs - ENDED;
    bench.dispatcher.leftOpen(await bench.actors.takeUp(TYPES, { ...inheritance, clockAheadMs }))();
    await bench.settled();
    await bench.clock.advance(599);
    t.is(bench.actors.snapshot(FRONT)?.value, 'open');
    await bench.clock.advance(1);
    t.is(bench.actors.snapshot(FRONT)?.value, 'closed');
    await bench.close();
    replays(t, dir);
  }
});

test('[C13] a timer whose deadline passed while nobody held its actor goes off at once', async (t) => {
  const bench = await successor(tempDir(t), [], [door], 60_000);
  bench.dispatcher.leftOpen(await bench.actors.takeUp(TYPES, await left(t)))();
  await bench.clock.advance(0);
  t.is(bench.actors.snapshot(FRONT)?.value, 'closed');
  await bench.close();
});

test('[C13] a timer has no more left than its whole delay, and not the time by which its host’s clock was set', async (t) => {
  const inheritance = await left(t);
  const leftMs = (more: Partial<Inheritance>, now: number) => {
    const [{ event } = {}] = adoptionEvents({ ...inheritance, ...more }, now);
    return (event as any).state.timers[CLOSING].leftMs;
  };
  t.is(leftMs({}, ENDED), 600);
  t.is(leftMs({}, 500), 1_000, 'a clock that is behind, and nobody knows by how much');
  t.is(leftMs({}, 100_000), 0);
  // Set ahead by an hour behind the record that armed it.
  const set = { after: 2, byMs: 3_600_000 };
  t.is(leftMs({ clockJumps: [set] }, ENDED + 3_600_000), 600);
  t.is(leftMs({ clockJumps: [{ ...set, after: 1 }] }, ENDED), 600, 'set before it was armed');
});

const clockwork = setup({
  types: {} as {
    context: { at: number };
    events: { type: 'LIT'; at: number } | { type: 'CLOCK_SET'; byMs: number };
  },
}).createMachine({
  id: 'lit',
  context: { at: 0 },
  on: {
    LIT: { actions: assign({ at: ({ event }) => event.at }) },
    CLOCK_SET: { actions: assign({ at: ({ context, event }) => context.at + event.byMs }) },
  },
});
const lit = defineActor({ type: 'test.door', machine: clockwork, version: 1 });

test('[C13] a machine that remembers times gets them by the clock of the host that goes on, once', async (t) => {
  const source = await openBench(tempDir(t), [lit]);
  for (const key of ['a', 'b']) source.actors.deliver(`test.door/${key}`, { type: 'LIT', at: 1_000 });
  const inheritance = { ...inheritanceOf(source), clockAheadMs: 120_000 };
  await source.close();

  const dir = tempDir(t);
  const bench = await successor(dir, [], [lit], 121_000);
  await bench.actors.takeUp(TYPES, inheritance);
  const ats = ({ actors }: Bench) => actors.list(lit).map(({ context }) => context.at);
  t.deepEqual(ats(bench), [121_000, 121_000]);
  const records = await bench.records();
  t.deepEqual(
    records.map(({ event, cause }) => [event.type, cause]),
    [
      ['adopt', undefined],
      ['adopt', undefined],
      ['CLOCK_SET', 1],
      ['CLOCK_SET', 2],
    ], // prettier-ignore
  );
  await bench.close();
  replays(t, dir, [lit]);

  // Killed before the second of them was durable: the next start makes it, and the first not again.
  const again = await successor(await cutAfter(t, records.slice(0, 3)), [], [lit], 121_000);
  await again.actors.takeUp(TYPES);
  t.deepEqual(ats(again), [121_000, 121_000]);
  await again.close();
});

test('[C13] a difference of clocks that a time service makes up is told to nobody', async (t) => {
  const source = await openBench(tempDir(t), [lit]);
  source.actors.deliver('test.door/a', { type: 'LIT', at: 1_000 });
  const bench = await successor(tempDir(t), [], [lit]);
  await bench.actors.takeUp(TYPES, inheritanceOf(source, { clockAheadMs: 2_000 }));
  t.is(bench.actors.list(lit)[0]?.context.at, 1_000);
  await Promise.all([source.close(), bench.close()]);
});

test('[C13] actors that another host may hold take no events, and are saved all the same', async (t) => {
  const dir = tempDir(t);
  const first = await openBench(dir, [door]);
  first.actors.deliver(FRONT, { type: 'OPEN', by: 'ann' });
  await first.settled();
  await first.close();

  const bench = await successor(dir);
  const refused = { code: 'HF_ACTOR_ELSEWHERE', message: /test\.door\/front/ };
  t.throws(() => bench.actors.deliver(FRONT, { type: 'CLOSE' }), refused);
  t.throws(() => bench.actors.send(door, 'front', { type: 'CLOSE' }), refused);
  t.throws(() => bench.actors.deliver(BACK, { type: 'CLOSE' }), { code: 'HF_ACTOR_ELSEWHERE' });
  t.is(bench.actors.get(door, 'front'), undefined);
  t.deepEqual(bench.actors.list(door), []);
  t.is(bench.actors.snapshot(FRONT), undefined);
  await bench.clock.advance(10_000);
  t.is((await bench.records()).length, 3, 'its timer is not armed');

  const save = async ({ actors, log }: Bench) => {
    const states = actors.takeDirty().map((state) => ({ actor: state.ref, body: JSON.stringify(state) }));
    await log.saveSnapshots(states, () => []);
    return states.map(({ actor }) => actor);
  };
  t.deepEqual(await save(bench), [FRONT]);
  t.like(recovered(dir).get(FRONT), { value: 'open', seq: 3 });

  // Taken up by the host that held it last: as it is, without a record, and its timer goes off.
  bench.dispatcher.leftOpen(await bench.actors.takeUp(TYPES))();
  t.is((await bench.records()).length, 3);
  t.is(bench.actors.get(door, 'front')?.value, 'open');
  await bench.clock.advance(0);
  t.is(bench.actors.get(door, 'front')?.value, 'closed');

  await bench.settled();
  bench.actors.setAside(TYPES);
  t.throws(() => bench.actors.deliver(FRONT, { type: 'KNOCK' }), refused);
  t.deepEqual(await save(bench), [FRONT], 'what changed before is saved behind it');
  t.like(recovered(dir).get(FRONT), { value: 'closed' });
  await bench.actors.takeUp(TYPES, await left(t));
  t.deepEqual(await save(bench), [FRONT]);
  t.like(recovered(dir).get(FRONT), { value: 'open', adopted: { host: 'attic' } });
  await bench.close();
  replays(t, dir);
});

test('[C13] an actor that a takeover does not name acts no more, after a restart neither, and may begin anew', async (t) => {
  const dir = tempDir(t);
  const first = await openBench(dir, [door]);
  first.actors.deliver(BACK, { type: 'BREAK' });
  await first.settled();
  await first.close();

  const second = await successor(dir);
  await second.actors.takeUp(TYPES, await left(t));
  t.deepEqual(
    second.actors.list(door).map(({ key }) => key),
    ['front'],
  );
  await second.close();

  const third = await successor(dir);
  const taken = await third.actors.takeUp(TYPES);
  t.deepEqual(
    taken.map(({ ref }) => ref),
    [FRONT],
  );
  third.actors.deliver(BACK, { type: 'OPEN', by: 'bob' });
  t.is(third.actors.get(door, 'back')?.value, 'open');
  await third.settled();
  t.deepEqual(
    third.actors
      .takeDirty()
      .map(({ ref, value }) => [ref, value])
      .sort(),
    [
      [BACK, 'open'],
      [FRONT, 'open'],
    ],
  );
  t.like(recovered(dir).get(BACK), { value: 'open' });
  await third.close();

  const fourth = await successor(dir);
  t.deepEqual((await fourth.actors.takeUp(TYPES)).map(({ ref }) => ref).sort(), [BACK, FRONT]);
  await fourth.close();
  replays(t, dir);
});

test('[C13] a takeover that a crash cut is made again, and not gone on from', async (t) => {
  const whole = await left(t, {}, ['front', 'back', 'side']);
  const source = await successor(tempDir(t));
  await source.actors.takeUp(TYPES, whole);
  const records = await source.records();
  t.is(records.length, 3);
  await source.close();

  for (const durable of [1, 2]) {
    const dir = await cutAfter(t, records.slice(0, durable));
    const bench = await successor(dir);
    await t.throwsAsync(bench.actors.takeUp(TYPES), {
      code: 'HF_ACTOR_ADOPTION_CUT',
      message: new RegExp(`attic.*record ${whole.seq}`),
    });
    t.deepEqual(bench.actors.list(door), []);
    t.throws(() => bench.actors.deliver(FRONT, { type: 'KNOCK' }), { code: 'HF_ACTOR_ELSEWHERE' });
    await bench.actors.takeUp(TYPES, whole);
    t.is(bench.actors.list(door).length, 3);
    await bench.close();
    const next = await successor(dir);
    t.is((await next.actors.takeUp(TYPES)).length, 3);
    await next.close();
    replays(t, dir);
  }
});

test('[C13] of the states of a host one sees from whom it took over, and whether all of it', async (t) => {
  const dir = tempDir(t);
  const bench = await successor(dir);
  await bench.actors.takeUp(TYPES, await left(t, {}, ['front', 'back']));
  const states = [...recovered(dir).values()];
  const all = () => true;
  t.like(newestTakeover(states, all), { host: 'attic', incarnation: '1', first: 1, isComplete: true });
  t.like(newestTakeover(states.slice(1), all), { first: 1, isComplete: false });
  t.is(
    newestTakeover(states, (ref) => ref.startsWith('other')),
    undefined,
  );
  await bench.actors.takeUp(TYPES, await left(t, { host: 'barn', seq: 9 }));
  for (const later of [[...recovered(dir).values()], [...recovered(dir).values()].reverse()]) {
    t.is(later.length, 2);
    t.like(newestTakeover(later, all), { host: 'barn', seq: 9, first: 3, isComplete: true });
  }
  await bench.close();
});

test('[C13] a state that is none is refused before the log is changed', async (t) => {
  const inheritance = await left(t, {}, ['front', 'back']);
  const [front, back] = inheritance.states as [ActorState, ActorState];
  const bad: [Partial<ActorState>, object][] = [
    [{ value: 'ajar' }, { code: 'HF_ACTOR_ADOPTION', message: /test\.door\/back.*attic.*no such state/ }],
    [{ version: -1 }, { code: 'HF_ACTOR_ADOPTION', message: /version/ }],
    [{ effects: { '2.0': { type: 3, at: 1, correlation: 'c' } as any } }, { code: 'HF_ACTOR_ADOPTION' }],
    [{ context: { at: new Date() } as any }, { code: 'HF_EVENT_INVALID' }],
    [{ version: 2 }, { code: 'HF_MACHINE_VERSION', message: /a later release wrote it/ }],
    [{ version: 0 }, { code: 'HF_MACHINE_VERSION', message: /no migrate/ }],
  ];
  const bench = await successor(tempDir(t));
  for (const [change, error] of bad) {
    const states = [front, { ...back, ...change }];
    await t.throwsAsync(bench.actors.takeUp(TYPES, { ...inheritance, states }), error);
  }
  t.is(bench.log.lastSeq(), 0);
  t.throws(() => bench.actors.deliver(FRONT, { type: 'KNOCK' }), { code: 'HF_ACTOR_ELSEWHERE' });
  await bench.actors.takeUp(TYPES, inheritance);
  t.is(bench.log.lastSeq(), 2);
  await bench.close();
});

test('[C13,C6] what a record says of another host is read strictly from a file', async (t) => {
  const bench = await successor(tempDir(t));
  await bench.actors.takeUp(TYPES, await left(t));
  const [record] = (await bench.records()) as [LogRecord];
  await bench.close();
  t.deepEqual(checkRecord(1, record, true), record);
  const { origin: _, ...older } = record;
  t.deepEqual(checkRecord(1, older, true), older);
  t.notThrows(() => checkRecord(1, { ...record, origin: { host: 'attic' } }, true));
  for (const origin of [
    { seq: 1 },
    { host: '' },
    { host: 'attic', seq: 0 },
    'attic',
    { host: 'attic', more: 1 },
  ])
    t.throws(() => checkRecord(1, { ...record, origin }, true), {
      code: 'HF_LOG_CORRUPT',
      message: /origin/,
    });
  const effects = [{ type: 'lamp.on', origin: 7 }];
  t.throws(() => checkRecord(1, { ...record, effects }, true), { code: 'HF_LOG_CORRUPT' });
});

test('[C13] what lives here already is not taken up a second time', async (t) => {
  const bench = await successor(tempDir(t));
  const inheritance = await left(t);
  t.is((await bench.actors.takeUp(TYPES, inheritance)).length, 1);
  bench.actors.setAside(TYPES);
  t.is((await bench.actors.takeUp(TYPES, inheritance)).length, 1);
  t.deepEqual(await bench.actors.takeUp(TYPES), []);
  await bench.close();
});

test('[C13] an actor that took no events when the clock was set hears of it when it is taken up', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(1_000);
  const bench = await openBench(dir, [lit, clockActor], [], clock);
  bench.actors.deliver('test.door/a', { type: 'LIT', at: 500 });
  bench.clock.set(60_000);
  bench.actors.lookAtClock();
  bench.actors.setAside(TYPES);
  bench.clock.set(3_600_000);
  bench.actors.lookAtClock();
  await bench.actors.takeUp(TYPES);
  t.is(bench.actors.list(lit)[0]?.context.at, 3_660_500);
  await bench.close();
  replays(t, dir, [lit, clockActor]);
});

test('[C13] a stored body that an adopted state names is kept', async (t) => {
  const inheritance = await left(t);
  const by = `fp_${'0'.repeat(32)}`;
  const states = inheritance.states.map((state) => ({ ...state, context: { opened: 1, by } }));
  const bench = await successor(tempDir(t));
  await bench.actors.takeUp(TYPES, { ...inheritance, states });
  t.deepEqual(
    bench.actors.blobHolders().map(({ ref }) => ref),
    [FRONT],
  );
  await bench.close();
});

test('[C13] states of types that are not taken up are left where they are', async (t) => {
  const bench = await openBench(tempDir(t), [door, { ...lit, type: 'test.lit' }], [], undefined, [
    ...TYPES,
    'test.lit',
  ]);
  await bench.actors.takeUp(['test.lit'], await left(t));
  t.is(bench.log.lastSeq(), 0);
  t.throws(() => bench.actors.deliver(FRONT, { type: 'KNOCK' }), { code: 'HF_ACTOR_ELSEWHERE' });
  t.truthy(bench.actors.deliver('test.lit/a', { type: 'LIT', at: 1 }).record);
  await bench.close();
});

/** The door as a later release has it: `closed` is called `shut`, and an open door rings a bell after a while. */
const laterMachine = setup({
  types: {} as { context: { count: number }; events: { type: 'PUSH' } },
  delays: { closing: 500, ringing: 2_000 },
}).createMachine({
  id: 'door',
  context: { count: 0 },
  initial: 'shut',
  states: {
    shut: { on: { PUSH: 'ajar' } },
    ajar: { id: 'door.open', after: { closing: 'shut', ringing: { actions: [] } } },
  },
});
const later: ActorDefinition = {
  ...door,
  machine: laterMachine,
  version: 2,
  earlier: { 1: door.machine },
  migrate: ({ value, context: { opened = 0 } }) => ({
    value: value === 'open' ? 'ajar' : 'shut',
    context: { count: opened },
  }),
};

test('[C13,C4] a state of an older machine is migrated as it is taken over, with its timers', async (t) => {
  const dir = tempDir(t);
  const bench = await successor(dir, [], [later]);
  await bench.actors.takeUp(TYPES, await left(t));
  const [record] = await bench.records();
  t.like(record, {
    version: 2,
    event: { state: { version: 1, value: 'open' } },
    to: { value: 'ajar', context: { count: 1 } },
  });
  t.deepEqual(record?.effects, [
    { type: 'timer.start', params: { timer: 'xstate.after.closing.door.open', at: 2_000 } },
    { type: 'timer.start', params: { timer: 'xstate.after.ringing.door.open', at: 3_400 } },
    { type: 'lamp.on', params: { by: 'ann' }, origin: 'attic:2.0' },
  ]);
  await bench.close();
  replays(t, dir, [later]);
});

test('[C13,C4,C8] what an older release took over is decided by the machine that is kept, and migrated later', async (t) => {
  const dir = tempDir(t);
  const old = await successor(dir);
  await old.actors.takeUp(TYPES, await left(t));
  old.actors.deliver(FRONT, { type: 'CLOSE' });
  await old.settled();
  await old.close();
  const bench = await successor(dir, [], [later]);
  await bench.actors.takeUp(TYPES);
  t.is(bench.actors.snapshot(FRONT)?.value, 'shut');
  await bench.close();
  t.deepEqual(
    read(dir, (reader) => [...reader.pages()].flat().map(({ body }) => JSON.parse(body).event.type)),
    ['adopt', 'CLOSE', 'migrate'],
  );
  replays(t, dir, [later]);
});

test('[C13,C4] a replay finds a takeover that was not decided so', async (t) => {
  const bench = await successor(tempDir(t));
  await bench.actors.takeUp(TYPES, await left(t));
  const [record] = (await bench.records()) as [LogRecord];
  await bench.close();
  const forged: Partial<LogRecord>[] = [
    { to: { ...record.to, value: 'closed' } },
    { to: { value: 'open', context: { opened: 7 } } },
    { effects: record.effects.slice(1) },
    {
      effects: record.effects.map((effect) => ({ ...effect, ...(effect.origin && { origin: 'barn:2.0' }) })),
    },
    { event: { ...record.event, state: {} } },
  ];
  for (const change of forged) {
    const dir = await cutAfter(t, [{ ...record, ...change }]);
    const report = read(dir, (reader) => verifyLog(reader, new Map([[door.type, door]])));
    t.is(report.divergence?.record.seq, 1);
  }
});

test('[C13] an event named as a takeover is refused from outside', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  t.throws(() => bench.actors.deliver(FRONT, { type: 'adopt', state: {} }), { code: 'HF_EVENT_INVALID' });
  await bench.close();
});

test('[C13,C7] a record says which record of another host led to it, and so does its explanation', async (t) => {
  const dir = tempDir(t);
  const bench = await successor(dir);
  await bench.actors.takeUp(TYPES, await left(t));
  const origin = { host: 'barn', seq: 41 };
  bench.actors.deliver(BACK, { type: 'KNOCK' }, { origin, correlation: 'c1' });
  await bench.settled();
  const [, begun, knocked] = await bench.records();
  t.deepEqual([begun?.origin, knocked?.origin, knocked?.correlation], [origin, origin, 'c1']);
  await bench.close();
  const wording = { describe: () => undefined, state: String, duration: (ms: number) => `${ms} ms` };
  const why = (seq: number) =>
    read(dir, (reader) => {
      const steps = causeSteps(reader, seq);
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) return step.value.map((link) => sentenceOf(link, wording)).join('\n');
      }
    });
  t.regex(why(3), /got KNOCK because of record 41 of host barn\./);
  t.regex(why(1), /took over from host attic, which had left it with its record 2\./);
  const page = await call(['log', 'show', '3', '--data-dir', dir], { cwd: tempDir(t) });
  t.regex(page.out, /origin +record 41 of host barn/);
});
