import test from 'ava';
import type { EffectRegistration } from '../../../../src/core/kernel/actors/effect.ts';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { asEpochMs } from '../../../../src/core/kernel/ids.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { openBench } from '../../../support/actors.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function effects(
  handlers: Record<string, EffectRegistration['handler']>,
  onRecovery: 'retry' | 'fail' = 'retry',
) {
  return ['bell.ring', 'lamp.on'].map((type) => {
    return { type, handler: handlers[type] ?? (() => undefined), onRecovery };
  });
}

test('[C2] an effect runs only after the record that asks for it can be read from the log', async (t) => {
  const dir = tempDir(t);
  const seen: string[][] = [];
  const bench = await openBench(
    dir,
    [door],
    effects({
      'lamp.on': async () => void seen.push((await bench.records()).map((record) => record.event.type)),
    }),
  );
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  t.deepEqual(seen, [], "nothing runs on the sender's turn");
  await bench.settled();
  t.deepEqual(seen, [['init', 'OPEN']]);
  await bench.close();
});

test('[C2] every transition is one record with its event, states, effects, correlation and cause', async (t) => {
  const bench = await openBench(
    tempDir(t),
    [door],
    effects({ 'bell.ring': () => ({ type: 'RANG', loud: true }) }),
  );
  const sent = bench.actors.deliver('test.door/front', { type: 'KNOCK' }, { correlation: 'story-1' });
  await sent.durable();
  await bench.settled();
  const records = await bench.records();
  t.like(records[0], {
    seq: 1,
    actor: 'test.door/front',
    event: { type: 'init', input: { closeAfterMs: 1_000 } },
    to: { value: 'closed' },
  });
  t.like(records[1], {
    seq: 2,
    machine: 'door',
    version: 1,
    event: { type: 'KNOCK' },
    from: 'closed',
    effects: [{ type: 'bell.ring', params: { times: 1 } }],
    correlation: 'story-1',
  });
  t.like(records[2], {
    seq: 3,
    event: { type: 'RANG', loud: true },
    cause: 2,
    outcome: '2.0',
    correlation: 'story-1',
    ignored: true,
  });
  t.is(records.length, 3);
  t.true(records.every((record, index) => record.at >= (records[index - 1]?.at ?? 0)));
  await bench.close();
});

test('[C2] an event that the state does not handle is recorded as ignored and changes nothing', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  const { record } = bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'stranger' });
  t.like(record, { ignored: true, to: { value: 'closed' }, effects: [] });
  await bench.close();
});

test('[C3] a delayed transition is a durable timer that fires at its deadline, with the record that armed it as cause', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  await bench.clock.advance(999);
  t.is(bench.actors.snapshot('test.door/front')?.value, 'open');
  await bench.clock.advance(1);
  t.is(bench.actors.snapshot('test.door/front')?.value, 'closed');
  await bench.settled();
  t.like((await bench.records()).at(-1), {
    event: { type: 'xstate.after.closing.door.open' },
    cause: 2,
    outcome: '2.1',
    at: 2_000,
  });
  await bench.close();
});

test('[C3] a timer of an earlier visit to a state is stale: the later visit keeps its own deadline', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  const armed = bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' }).record;
  await bench.settled();
  await bench.clock.advance(600);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'bob' });
  await bench.settled();
  await bench.clock.advance(600);
  t.is(bench.actors.snapshot('test.door/front')?.value, 'open');
  const late = bench.actors.deliver(
    'test.door/front',
    { type: 'xstate.after.closing.door.open' },
    { outcome: `${armed?.seq}.1` },
  );
  t.like(late.record, { stale: true, ignored: true, to: { value: 'open' } });
  await bench.clock.advance(400);
  t.is(bench.actors.snapshot('test.door/front')?.value, 'closed');
  await bench.close();
});

test('[C5] after a restart timers fire at their original deadline, and at once when it has passed', async (t) => {
  const dir = tempDir(t);
  const first = await openBench(dir, [door]);
  first.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  first.actors.deliver('test.door/back', { type: 'OPEN', by: 'ann' });
  await first.settled();
  await first.clock.advance(500);
  first.actors.deliver('test.door/back', { type: 'OPEN', by: 'bob' });
  await first.settled();
  await first.close();

  const second = await openBench(dir, [door], [], new VirtualClock(2_100));
  await second.clock.advance(0);
  t.is(second.actors.snapshot('test.door/front')?.value, 'closed', 'its deadline 2,000 has passed');
  t.is(second.actors.snapshot('test.door/back')?.value, 'open');
  await second.clock.advance(400);
  t.is(second.actors.snapshot('test.door/back')?.value, 'closed', 'its deadline is 2,500');
  await second.close();
});

for (const onRecovery of ['retry', 'fail'] as const) {
  test(`[C5] an effect that a stop left open is taken up again as ${onRecovery}`, async (t) => {
    const dir = tempDir(t);
    const hangs = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const first = await openBench(dir, [door], effects({ 'bell.ring': hangs }, onRecovery));
    first.actors.deliver('test.door/front', { type: 'KNOCK' }, { correlation: 'story-1' });
    await first.log.whenDurable(2);
    await new Promise((resolve) => setImmediate(resolve));
    await first.close();

    const ids: [string, boolean][] = [];
    const again = (_: unknown, context: { id: string; recovered: boolean }) => {
      ids.push([context.id, context.recovered]);
      return { type: 'RANG', loud: false };
    };
    const second = await openBench(dir, [door], effects({ 'bell.ring': again }, onRecovery));
    await second.settled();
    t.deepEqual(ids, onRecovery === 'retry' ? [['2.0', true]] : []);
    const type = onRecovery === 'retry' ? 'RANG' : 'effect.lost';
    t.like((await second.records()).at(-1), { event: { type }, outcome: '2.0', correlation: 'story-1' });
    await second.close();
  });
}

test('[C2] a handler that throws or is late gives the actor effect.failed with the code, never the secret text', async (t) => {
  const bench = await openBench(
    tempDir(t),
    [door],
    [
      {
        type: 'lamp.on',
        onRecovery: 'retry',
        handler: () => Promise.reject<undefined>(new Error('token hunter2')),
      },
      {
        type: 'bell.ring',
        onRecovery: 'retry',
        deadlineMs: 5_000,
        handler: () => new Promise<undefined>(() => {}),
      },
    ],
  );
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  bench.actors.deliver('test.door/back', { type: 'KNOCK' });
  await bench.log.whenDurable(bench.log.lastSeq());
  await new Promise((resolve) => setImmediate(resolve));
  await bench.clock.advance(5_000);
  await bench.settled();
  const failed = (await bench.records()).filter((record) => record.event.type === 'effect.failed');
  t.deepEqual(
    failed.map((record) => record.event.code),
    ['HF_INTERNAL', 'HF_EFFECT_TIMEOUT'],
  );
  t.false(JSON.stringify(failed).includes('hunter2'));
  await bench.close();
});

test('an unknown actor type is refused by name', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  t.throws(() => bench.actors.deliver('test.window/1', { type: 'OPEN' }), {
    instanceOf: HoldfastError,
    code: 'HF_ACTOR_UNKNOWN',
  });
  await bench.close();
});

test('[C2] an actor in a final state takes no more events, and they are recorded', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  bench.actors.deliver('test.door/front', { type: 'BREAK' });
  const { record } = bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  t.like(record, { ignored: true, to: { value: 'broken', done: true } });
  await bench.close();
});

test('a log written by another version of a machine is refused unless the definition has an upcaster', async (t) => {
  const dir = tempDir(t);
  const first = await openBench(dir, [door]);
  first.actors.deliver('test.door/front', { type: 'KNOCK' });
  await first.settled();
  await first.close();
  await t.throwsAsync(() => openBench(dir, [{ ...door, version: 2 }]), { code: 'HF_MACHINE_VERSION' });
});

test("[C2] a batched actor's effects run as soon as the record is queued, and the record says so", async (t) => {
  const batched = {
    ...door,
    durability: (record: LogRecord) => (record.event.type === 'KNOCK' ? 'batched' : 'sync'),
  } as const;
  const seen: (readonly [string, boolean])[] = [];
  const bench = await openBench(
    tempDir(t),
    [batched],
    effects({
      'bell.ring': (_, { cause }) => void seen.push(['bell', bench.log.status().durableSeq >= cause]),
      'lamp.on': (_, { cause }) => void seen.push(['lamp', bench.log.status().durableSeq >= cause]),
    }),
  );
  bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  t.deepEqual(seen, [['bell', false]]);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  t.deepEqual(seen.at(-1), ['lamp', true], 'refusals and key changes of the same actor may still be sync');
  const marked = (await bench.records()).filter((record) => record.batched);
  t.deepEqual(
    marked.map((record) => record.event.type),
    ['KNOCK'],
  );
  await bench.close();
});

for (const [name, event] of Object.entries({
  'a bigint': { type: 'KNOCK', n: 1n },
  'a Date': { type: 'KNOCK', at: new Date(0) },
  'a number that is none': { type: 'KNOCK', n: Number.NaN },
  'the reserved type init': { type: 'init' },
})) {
  test(`[C3] an event with ${name} is refused before anything changes`, async (t) => {
    const bench = await openBench(tempDir(t), [door]);
    t.throws(() => bench.actors.deliver('test.door/front', event), { code: 'HF_EVENT_INVALID' });
    t.is(bench.actors.deliver('test.door/front', { type: 'KNOCK' }).record?.seq, 2);
    await bench.close();
  });
}

test('[C2] an outcome that cannot be recorded is a failed effect, and the log goes on', async (t) => {
  const bench = await openBench(
    tempDir(t),
    [door],
    effects({ 'bell.ring': () => ({ type: 'RANG', n: 1n }) as never }),
  );
  bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  await bench.settled();
  t.like((await bench.records()).at(-1), { event: { type: 'effect.failed', code: 'HF_EVENT_INVALID' } });
  await bench.close();
});

test('[C5] a plugin that is absent for one run finds its actors and their bodies again', async (t) => {
  const dir = tempDir(t);
  const key = `fp_${'a'.repeat(32)}`;
  const first = await openBench(dir, [door]);
  first.actors.deliver(
    'test.door/front',
    { type: 'OPEN', by: key },
    { blobs: new Map([[key, Buffer.from('body')]]) },
  );
  await first.settled();
  await first.close(); // as after a crash: nothing was saved

  const second = await openBench(dir, [{ ...door, type: 'test.gate' }]);
  second.actors.deliver('test.gate/only', { type: 'KNOCK' });
  await second.settled();
  const keep = new Set(
    second.actors.blobHolders().flatMap((state) => JSON.stringify(state).match(/fp_[0-9a-f]{32}/g) ?? []),
  );
  const states = second.actors
    .takeDirty()
    .map((state) => ({ actor: state.ref, body: JSON.stringify(state) }));
  await second.log.saveSnapshots(states, () => keep);
  await second.close();

  const third = await openBench(dir, [door]);
  t.like(third.actors.snapshot('test.door/front'), { context: { opened: 1, by: key } });
  t.is(Buffer.from(third.log.blob(key) ?? '').toString(), 'body');
  await third.close();
});

test('[C5,R32] a body that the state does not name after its event is not stored', async (t) => {
  const bench = await openBench(tempDir(t), [door]);
  const [named, unnamed] = [`fp_${'a'.repeat(32)}`, `fp_${'b'.repeat(32)}`];
  const blobs = new Map([named, unnamed].map((key) => [key, Buffer.from('body')]));
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: named }, { blobs });
  await bench.settled();
  t.is(Buffer.from(bench.log.blob(named) ?? '').toString(), 'body');
  t.is(bench.log.blob(unnamed), undefined);
  await bench.close();
});

test('[C3] a clock that is set back does not stretch a timer', async (t) => {
  const clock = new VirtualClock(10_000_000);
  let backMs = 0;
  const shifted = {
    now: () => asEpochMs(clock.now() - backMs),
    monotonic: () => clock.monotonic(),
    after: clock.after.bind(clock),
  };
  const bench = await openBench(tempDir(t), [door], [], shifted);
  bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  await bench.settled();
  backMs = 3_600_000;
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await bench.settled();
  await clock.advance(1_000);
  t.is(bench.actors.snapshot('test.door/front')?.value, 'closed');
  await bench.close();
});

test('[C3] a timer that is asked for while a stop waits for effects is armed by the next start only', async (t) => {
  const dir = tempDir(t);
  const rung = Promise.withResolvers<void>();
  const bench = await openBench(dir, [door], effects({ 'bell.ring': () => rung.promise }));
  await bench.actors.deliver('test.door/back', { type: 'KNOCK' }).durable();
  const closed = bench.close(60_000);
  await bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' }).durable();
  rung.resolve();
  await closed;
  t.is(bench.clock.armed, 0, 'it would send to a log that is closed');
  const next = await openBench(dir, [door], effects({}), new VirtualClock(10_000));
  await next.clock.advance(0);
  await next.settled();
  t.is(next.actors.snapshot('test.door/front')?.value, 'closed');
  await next.close();
});
