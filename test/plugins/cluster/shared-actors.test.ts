import test from 'ava';
import type { ActorState } from '../../../src/core/kernel/actors/transition.ts';
import { SharedActors } from '../../../src/plugins/cluster/shared-actors.ts';
import { silent } from '../../support/cluster.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const state = (ref: string, order: number): ActorState => ({
  ...{ ref, machine: 'door', version: 1, value: 'open', context: { order }, done: false },
  ...{ seq: 1, at: 1, timers: {}, effects: {} },
});

/** A host that has one shared actor, with a type that stays its own beside it. */
function host(
  answers: number[] = [],
  { others = [], failures = 0 }: { others?: number[]; failures?: number } = {},
) {
  const clock = new VirtualClock();
  const own = new Map([['test.door/front', state('test.door/front', 4)]]);
  const adopted: string[] = [];
  const sent: string[] = [];
  const routes = [
    { everyHost: true, to: 'test.door' },
    { everyHost: true, ownState: true, to: 'test.lamp' },
    { to: 'test.bell' },
  ];
  const actors = {
    states: (type?: string) => [...own.values()].filter(({ ref }) => ref.startsWith(`${type}/`)),
    snapshot: (ref: string) => own.get(ref),
    adopt: ({ states }: { readonly states: readonly { readonly ref: string }[] }) => {
      adopted.push(...states.map(({ ref }) => ref));
    },
  };
  let asked = 0;
  let marks = 0;
  const shared = new SharedActors({
    services: { actors, clock, logger: silent, declarations: () => ({ routes }) },
    send: async (ref) => void sent.push(ref),
    ask: async () => {
      asked += 1;
      return answers.shift() ?? 0;
    },
    others: () => others.shift() ?? 2,
    mark: async () => {
      marks += 1;
      if (failures-- > 0) throw new Error('cut off again');
    },
  });
  return { shared, clock, adopted, sent, asked: () => asked, marks: () => marks };
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

test('[C13] a host takes states of actors that it lacks or has as they were before, and of no others', (t) => {
  const { shared, adopted } = host();
  const { machine, version, value, at } = state('', 0);
  const take = (ref: string, asOf: number, from = 'attic', context = { order: asOf }) =>
    shared.take({ from, ref, asOf, state: { machine, version, value, context, at } }, 'cellar');
  take('test.door/back', 1);
  take('test.door/front', 5);
  take('test.door/front', 4);
  take('test.door/side', 9, 'cellar');
  take('test.lamp/hall', 9);
  take('no address at all', 9);
  shared.take({ from: 'attic', ref: 'test.door/bad', asOf: 9, state: 'nothing' }, 'cellar');
  t.deepEqual(adopted, ['test.door/back', 'test.door/front']);
});
