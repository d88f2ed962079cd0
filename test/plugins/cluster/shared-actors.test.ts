import test from 'ava';
import type { ActorDefinition } from '../../../src/core/kernel/actors/definition.ts';
import type { ActorState } from '../../../src/core/kernel/actors/transition.ts';
import { SharedActors } from '../../../src/plugins/cluster/messages/shared-actors.ts';
import { silent } from '../../support/cluster.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const state = (ref: string, order: number): ActorState => ({
  ...{ ref, machine: 'door', version: 1, value: 'open', context: { order }, done: false },
  ...{ seq: 1, at: 1, timers: {}, effects: {} },
});

interface Wish {
  readonly others?: number[];
  readonly failures?: number;
  /** What happens on the host while each state is on its way. */
  readonly onSent?: ((own: Map<string, ActorState>) => void)[];
}

/** A host that has one shared actor, with a type that stays its own beside it. */
function host(answers: number[] = [], { others = [], failures = 0, onSent = [] }: Wish = {}) {
  const clock = new VirtualClock();
  const own = new Map([['test.door/front', state('test.door/front', 4)]]);
  const delivered: unknown[] = [];
  const sent: string[] = [];
  type Hear = NonNullable<ActorDefinition['hear']>;
  const hear: Hear = (known, { context, from, aheadMs }) =>
    known?.context.order === context.order
      ? undefined
      : { type: 'HEARD', from, aheadMs, order: context.order, known: known?.context.order };
  const declared = [{ type: 'test.door', hear }, { type: 'test.lamp' }];
  const actors = {
    states: (type?: string) => [...own.values()].filter(({ ref }) => ref.startsWith(`${type}/`)),
    snapshot: (ref: string) => own.get(ref),
    deliver: (ref: string, event: object) => {
      delivered.push({ ref, ...event });
      return { record: undefined, durable: () => Promise.reject(new Error('nobody waits')) };
    },
  };
  let asked = 0;
  let marks = 0;
  const shared = new SharedActors({
    services: { actors, clock, logger: silent, declarations: () => ({ actors: declared }) },
    send: async (ref) => {
      sent.push(ref);
      onSent.shift()?.(own);
    },
    ask: async () => {
      asked += 1;
      return answers.shift() ?? 0;
    },
    others: () => others.shift() ?? 2,
    mark: async () => {
      marks += 1;
      if (marks <= failures) throw new Error('cut off again');
    },
  });
  return { shared, clock, delivered, sent, asked: () => asked, marks: () => marks };
}

test('[C13] after missed messages a host counts as cut off until every other one has sent what it has', async (t) => {
  const { shared, clock, sent, asked } = host([0, 1, 2]);
  t.false(shared.isIncomplete);
  const done = shared.complete();
  t.true(shared.isIncomplete);
  await clock.advance(1_000);
  t.is(asked(), 1);
  await clock.advance(2_000);
  t.is(asked(), 2);
  t.true(shared.isIncomplete, 'one of two has answered');
  await clock.advance(2_000);
  await done;
  t.false(shared.isIncomplete);
  t.deepEqual([...new Set(sent)], ['test.door/front'], 'what stays its own is not sent');
});

test('[C13] after missed messages a host counts as cut off until it has read what the others have sent', async (t) => {
  const { shared, clock, asked, marks } = host([2, 2], { failures: 1 });
  const done = shared.complete();
  await clock.advance(1_000);
  t.deepEqual([asked(), marks()], [1, 1]);
  t.true(shared.isIncomplete, 'all have answered, but it was cut off before it had read that');
  await clock.advance(2_000);
  await done;
  t.deepEqual([asked(), marks()], [2, 2]);
});

test('[C13] a host that does not know yet who lives asks again, rather than go on without their states', async (t) => {
  const { shared, clock, asked } = host([0, 1], { others: [Number.POSITIVE_INFINITY, 1] });
  const done = shared.complete();
  await clock.advance(1_000);
  t.true(shared.isIncomplete);
  await clock.advance(2_000);
  await done;
  t.is(asked(), 2);
});

test('[C13] what another host knows of an actor reaches it as its own event, and nothing of an actor that stays its own', (t) => {
  const { shared, clock, delivered } = host();
  const now = clock.now();
  const take = (ref: string, order: number, from = 'attic') =>
    shared.take(
      {
        ...{ from, ref, asOf: order },
        state: { machine: 'door', version: 1, value: 'open', context: { order }, at: now - 90_000 },
      },
      'cellar',
    );
  take('test.door/back', 1);
  take('test.door/front', 3);
  take('test.door/front', 4);
  take('test.door/side', 9, 'cellar');
  take('test.lamp/hall', 9);
  take('no address at all', 9);
  shared.take({ from: 'attic', ref: 'test.door/bad', asOf: 9, state: 'nothing' }, 'cellar');
  const common = { type: 'HEARD', from: 'attic', aheadMs: 90_000 };
  t.deepEqual(delivered, [
    { ref: 'test.door/back', ...common, order: 1, known: undefined },
    { ref: 'test.door/front', ...common, order: 3, known: 4 },
  ]);
});

test('[C13] a state that was changed on its way is sent again, for hosts that had nothing to change', async (t) => {
  const change = (own: Map<string, ActorState>) =>
    void own.set('test.door/front', {
      ...state('test.door/front', 9),
      context: { order: 9, changed: 9 },
    });
  const { shared, sent } = host([], { onSent: [change] });
  t.true(await shared.share());
  t.is(sent.length, 2);
});
