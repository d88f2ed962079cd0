import test, { type ExecutionContext } from 'ava';
import { setup } from 'xstate';
import { defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import type {
  EffectContext,
  EffectGuard,
  EffectRegistration,
} from '../../../../src/core/kernel/actors/effect.ts';
import { effect } from '../../../../src/machines/effect.ts';
import { type Bench, openBench } from '../../../support/actors.ts';
import { tempDir } from '../../../support/temp.ts';

/** A bell that rings twice for each call, and once more when nobody comes. */
const bellMachine = setup({
  types: {} as { events: { type: 'CALL' } | { type: 'COME' } },
  actions: { ring: effect<{ times: number }>() },
  delays: { patience: 1_000 },
}).createMachine({
  id: 'bell',
  initial: 'quiet',
  on: {
    CALL: {
      target: '.ringing',
      actions: [
        { type: 'ring', params: { times: 1 } },
        { type: 'ring', params: { times: 2 } },
      ],
    },
    COME: '.quiet',
  },
  states: {
    quiet: {},
    ringing: { after: { patience: { actions: { type: 'ring', params: { times: 3 } } } } },
  },
});
const bell = defineActor({ type: 'test.bell', machine: bellMachine, version: 1 });
const gong = defineActor({ type: 'test.gong', machine: bellMachine, version: 1 });
const BELL = 'test.bell/door';
const GONG = 'test.gong/hall';

type Ring = EffectContext & { readonly times: number };

/** A lease as a test wants it. */
class Lease implements EffectGuard {
  /** The records that were waited for. */
  readonly asked: number[] = [];
  readonly host = 'here';
  holds = true;
  #known = Promise.resolve();

  async ready(seq: number): Promise<void> {
    this.asked.push(seq);
    await this.#known;
  }

  fencingToken(): string {
    if (!this.holds) throw new Error('the lease is over');
    return '1:7';
  }

  /** Lets `ready` wait. @returns ends that */
  wait(): PromiseWithResolvers<void> {
    const known = Promise.withResolvers<void>();
    known.promise.catch(() => {});
    this.#known = known.promise;
    return known;
  }
}

interface Guarded extends Bench {
  readonly lease: Lease;
  readonly rings: Ring[];
}

async function open(
  t: ExecutionContext,
  onRing: (ring: Ring) => Promise<void> | void = () => {},
  deadlineMs = 30_000,
): Promise<Guarded> {
  const rings: Ring[] = [];
  const lease = new Lease();
  const ring: EffectRegistration = {
    type: 'ring',
    onRecovery: 'retry',
    deadlineMs,
    handler: ({ times }: { times: number }, context: EffectContext) => {
      rings.push({ ...context, times });
      return onRing({ ...context, times });
    },
  };
  const bench = await openBench(tempDir(t), [bell, gong], [ring]);
  bench.dispatcher.guardWith((type) => (type === bell.type ? lease : undefined));
  return { ...bench, lease, rings };
}

/** Waits until all records are durable, and what they led to has happened. */
async function passed({ log }: Bench): Promise<void> {
  await log.whenDurable(log.lastSeq());
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const openEffects = ({ actors }: Bench, ref = BELL) => Object.keys(actors.snapshot(ref)?.effects ?? {});

test('[C13] an effect of a guarded type waits until its record is known elsewhere, and gets a fencing token', async (t) => {
  const bench = await open(t);
  const known = bench.lease.wait();
  bench.actors.deliver(BELL, { type: 'CALL' });
  await passed(bench);
  t.deepEqual([bench.lease.asked, bench.rings], [[2], []]);
  known.resolve();
  await bench.settled();
  t.deepEqual(
    bench.rings.map(({ times, fencingToken }) => [times, fencingToken]),
    [
      [1, '1:7'],
      [2, '1:7'],
    ],
  ); // prettier-ignore
  t.deepEqual(bench.lease.asked, [2, 2]);
  t.deepEqual(openEffects(bench), []);
  await bench.close();
});

test('[C13] an effect of a type without a guard runs as ever', async (t) => {
  const bench = await open(t);
  bench.lease.holds = false;
  bench.actors.deliver(GONG, { type: 'CALL' });
  await bench.settled();
  t.is(bench.rings.length, 2);
  t.true(bench.rings.every((ring) => !('fencingToken' in ring)));
  t.deepEqual(bench.lease.asked, []);
  await bench.close();
});

test('[C13] without a lease an effect is neither carried out nor answered', async (t) => {
  const bench = await open(t);
  bench.lease.holds = false;
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  t.deepEqual([bench.rings, bench.ends, openEffects(bench)], [[], [], ['2.0', '2.1']]);
  await bench.close();
});

test('[C13] an effect whose record does not get elsewhere stays open', async (t) => {
  const bench = await open(t);
  bench.lease.wait().reject(new Error('the stream is gone'));
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  t.deepEqual([bench.rings, bench.ends, openEffects(bench)], [[], [], ['2.0', '2.1']]);
  await bench.close();
});

test('[C13] a lease that ends amid the effects of a record ends them at the next', async (t) => {
  const bench = await open(t, () => {
    bench.lease.holds = false;
  });
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  t.deepEqual(
    bench.rings.map(({ times }) => times),
    [1],
  );
  t.deepEqual(openEffects(bench), ['2.1'], 'what was done is answered');
  await bench.close();
});

test('[C13] an effect that a crash left open waits and gets a fencing token, too', async (t) => {
  const bench = await open(t);
  bench.lease.holds = false;
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  bench.lease.holds = true;
  const known = bench.lease.wait();
  bench.dispatcher.leftOpen(bench.actors.states())();
  await passed(bench);
  t.deepEqual(bench.rings, []);
  known.resolve();
  await bench.settled();
  t.deepEqual(
    bench.rings.map(({ id, recovered, fencingToken }) => [id, recovered, fencingToken]),
    [
      ['here:2.0', true, '1:7'],
      ['here:2.1', true, '1:7'],
    ],
  ); // prettier-ignore
  await bench.close();
});

test('[C13] the end of a type interrupts its effects, waits for the last of them, and leaves them open', async (t) => {
  const cleaned = Promise.withResolvers<void>();
  const bench = await open(t, async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await cleaned.promise;
  });
  bench.actors.deliver(BELL, { type: 'CALL' });
  bench.actors.deliver(GONG, { type: 'CALL' });
  await passed(bench);
  t.is(bench.rings.length, 2);
  let isOver = false;
  const over = bench.dispatcher.endOf([bell.type]).then(() => {
    isOver = true;
  });
  await passed(bench);
  t.false(isOver, 'the handler still cleans up');
  t.deepEqual(bench.rings.map(({ actor, signal }) => [actor, signal.aborted]).sort(), [
    [BELL, true],
    [GONG, false],
  ]); // prettier-ignore
  t.like(bench.rings.find(({ actor }) => actor === BELL)?.signal.reason, { code: 'HF_EFFECT_ELSEWHERE' });
  cleaned.resolve();
  await over;
  bench.actors.setAside([bell.type]);
  t.is(bench.rings.length, 2, 'the second effect of the record is not begun');
  t.deepEqual(bench.ends, []);
  await bench.close();
});

test('[C13] a type that comes to rest begins no effect, and lets the one under way come to its end', async (t) => {
  const done = Promise.withResolvers<void>();
  const bench = await open(t, () => done.promise);
  bench.actors.deliver(BELL, { type: 'CALL' });
  await passed(bench);
  let isAtRest = false;
  const rest = bench.dispatcher.restOf([bell.type], 5_000).then(() => {
    isAtRest = true;
  });
  bench.actors.deliver('test.bell/other', { type: 'CALL' });
  await passed(bench);
  t.deepEqual([isAtRest, bench.rings.length], [false, 1]);
  t.false(bench.rings[0]?.signal.aborted);
  done.resolve();
  await rest;
  await bench.dispatcher.endOf([bell.type]);
  t.like(bench.ends, [{ id: '2.0', outcome: 'done' }]);
  t.deepEqual(openEffects(bench), ['2.1'], 'the next one of the record is left to the successor');
  t.is(openEffects(bench, 'test.bell/other').length, 2);
  bench.actors.setAside([bell.type]);
  await bench.clock.advance(1_000);
  t.is(bench.rings.length, 1, 'timers do not go off');
  await bench.close();
});

test('[C13] an effect that takes longer than the patience is interrupted, and one whose type ends meanwhile at once', async (t) => {
  for (const patienceMs of [5_000, 600_000]) {
    const bench = await open(t, async ({ signal }) => {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    bench.actors.deliver(BELL, { type: 'CALL' });
    await passed(bench);
    const rest = bench.dispatcher.restOf([bell.type], patienceMs);
    await bench.clock.advance(4_999);
    t.false(bench.rings[0]?.signal.aborted);
    if (patienceMs === 5_000) await bench.clock.advance(1);
    else await bench.dispatcher.endOf([bell.type]);
    await rest;
    await bench.dispatcher.endOf([bell.type]);
    t.true(bench.rings[0]?.signal.aborted);
    t.deepEqual([openEffects(bench), bench.ends], [['2.0', '2.1'], []]);
    await bench.close();
  }
});

test('[C13] a handler that does not obey is waited for until its deadline', async (t) => {
  const bench = await open(t, () => new Promise(() => {}), 5_000);
  bench.actors.deliver(BELL, { type: 'CALL' });
  await passed(bench);
  let isOver = false;
  const over = bench.dispatcher.endOf([bell.type]).then(() => {
    isOver = true;
  });
  await bench.clock.advance(4_999);
  t.false(isOver);
  await bench.clock.advance(1);
  await over;
  t.deepEqual(openEffects(bench), ['2.0', '2.1']);
  await bench.close();
});

test('[C13] the end of a type does not wait for a record that does not get elsewhere', async (t) => {
  const bench = await open(t);
  bench.lease.wait();
  bench.actors.deliver(BELL, { type: 'CALL' });
  await passed(bench);
  await bench.dispatcher.endOf([bell.type]);
  t.deepEqual([bench.rings, openEffects(bench)], [[], ['2.0', '2.1']]);
  await bench.close();
});

test('[C13] a stop does not wait for a record that does not get elsewhere', async (t) => {
  const bench = await open(t);
  bench.lease.wait();
  bench.actors.deliver(BELL, { type: 'CALL' });
  await passed(bench);
  await bench.close();
  t.deepEqual(bench.rings, []);
});

test('[C13] timers of a type that ended do not go off, and those of others do', async (t) => {
  const bench = await open(t);
  bench.actors.deliver(BELL, { type: 'CALL' });
  bench.actors.deliver(GONG, { type: 'CALL' });
  await bench.settled();
  await bench.dispatcher.endOf([bell.type]);
  bench.actors.setAside([bell.type]);
  await bench.clock.advance(1_000);
  await bench.settled();
  t.deepEqual(
    bench.rings.filter(({ times }) => times === 3).map(({ actor }) => actor),
    [GONG],
  );
  await bench.close();
});

test('[C13] a timer that is armed while its type ends reaches nobody', async (t) => {
  const bench = await open(t);
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  bench.actors.setAside([bell.type]);
  await bench.clock.advance(1_000);
  t.is(bench.clock.armed, 0);
  t.is((await bench.records()).filter(({ event }) => event.type.startsWith('xstate.after')).length, 0);
  await bench.close();
});

test('[C13] effects whose record is not durable yet when their type ends run once, when it is taken up again', async (t) => {
  const bench = await open(t);
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.dispatcher.endOf([bell.type]);
  bench.actors.setAside([bell.type]);
  const states = await bench.actors.takeUp([bell.type]);
  await bench.settled();
  t.deepEqual(bench.rings, []);
  bench.dispatcher.leftOpen(states)();
  await bench.settled();
  t.deepEqual(
    bench.rings.map(({ id }) => id),
    ['here:2.0', 'here:2.1'],
  );
  t.deepEqual(openEffects(bench), []);
  await bench.clock.advance(1_000);
  await bench.settled();
  t.is(bench.rings.length, 3, 'its timer goes off');
  await bench.close();
});

test('[C13] a type that is taken up again carries out its effects', async (t) => {
  const bench = await open(t);
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  await bench.dispatcher.endOf([bell.type]);
  bench.actors.setAside([bell.type]);
  t.throws(() => bench.actors.deliver(BELL, { type: 'CALL' }), { code: 'HF_ACTOR_ELSEWHERE' });
  bench.dispatcher.leftOpen(await bench.actors.takeUp([bell.type]))();
  bench.actors.deliver(BELL, { type: 'CALL' });
  await bench.settled();
  t.is(bench.rings.length, 4);
  await bench.close();
});
