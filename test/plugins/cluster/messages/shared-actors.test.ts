import test from 'ava';
import type { ActorDefinition } from '../../../../src/core/kernel/actors/definition.ts';
import type { ActorState } from '../../../../src/core/kernel/actors/transition.ts';
import { isObject, type Json } from '../../../../src/core/kernel/json.ts';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { SharedActors } from '../../../../src/plugins/cluster/messages/shared-actors.ts';
import { silent } from '../../../support/cluster.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const doorAt = (ref: string, order: number): ActorState => ({
  ...{ ref, machine: 'door', version: 1, value: 'open', context: { order }, done: false },
  ...{ seq: 1, at: 1, timers: {}, effects: {} },
});

interface Wish {
  /** The states beside the one of the front door. */
  readonly others?: readonly string[];
  /** What happens on the host while each state is on its way. */
  readonly onSent?: ((own: Map<string, ActorState>) => void)[];
  readonly send?: (ref: string, state: Json) => Promise<void>;
  readonly tell?: ActorDefinition['tell'];
  /** The log has room then. */
  readonly room?: Promise<void>;
}

/** A host that has shared actors, with a type that stays its own beside them. */
function host({ others = [], onSent = [], send, tell, room }: Wish = {}) {
  const clock = new VirtualClock();
  const refs = ['test.door/front', ...others];
  const own = new Map(refs.map((ref) => [ref, doorAt(ref, 4)]));
  const delivered: unknown[] = [];
  const sent: string[] = [];
  type Hear = NonNullable<ActorDefinition['hear']>;
  const hear: Hear = (known, { version, context, from, aheadMs }) => {
    if (version !== 1) throw new TypeError('a door of another version');
    return known?.context.order === context.order
      ? undefined
      : { type: 'HEARD', from, aheadMs, order: context.order, known: known?.context.order };
  };
  const declared = [{ type: 'test.door', hear, ...(tell && { tell }) }, { type: 'test.lamp' }];
  const actors = {
    states: (type?: string) => [...own.values()].filter(({ ref }) => ref.startsWith(`${type}/`)),
    snapshot: (ref: string) => own.get(ref),
    deliver: (ref: string, event: object) => {
      delivered.push({ ref, ...event });
      const nobody = () => Promise.reject(new Error('nobody waits'));
      return { record: undefined, decided: nobody, durable: nobody };
    },
    whenFree: async () => room,
  };
  const shared = new SharedActors({
    host: 'cellar',
    services: { actors, clock, logger: silent, declarations: () => ({ actors: declared }) },
    send: async (ref, state) => {
      await send?.(ref, state);
      sent.push(ref);
      onSent.shift()?.(own);
    },
  });
  return { shared, clock, delivered, sent, own };
}

const never = () => false;

test('[C13] what another host knows of an actor reaches it as its own event, and nothing of an actor that stays its own', async (t) => {
  const { shared, clock, delivered } = host();
  const now = clock.now();
  const take = (ref: string, order: number, from = 'attic') =>
    shared.take({
      ...{ from, ref, version: '1.0.0' },
      state: { machine: 'door', version: 1, value: 'open', context: { order }, at: now - 90_000 },
    });
  await take('test.door/back', 1);
  await take('test.door/front', 3);
  await take('test.door/front', 4);
  await take('test.door/side', 9, 'cellar');
  await take('test.lamp/hall', 9);
  t.true(await take('no address at all', 9));
  const common = { type: 'HEARD', from: 'attic', aheadMs: 90_000 };
  t.deepEqual(delivered, [
    { ref: 'test.door/back', ...common, order: 1, known: undefined },
    { ref: 'test.door/front', ...common, order: 3, known: 4 },
  ]);
});

test('[C13] a state that was changed on its way is sent again, for hosts that had nothing to change', async (t) => {
  const change = (own: Map<string, ActorState>) =>
    void own.set('test.door/front', {
      ...doorAt('test.door/front', 9),
      context: { order: 9, changed: 9 },
    });
  const { shared, sent } = host({ others: ['test.lamp/hall'], onSent: [change] });
  t.true(await shared.send(never));
  t.deepEqual(sent, ['test.door/front', 'test.door/front'], 'what stays its own is not sent');
});

test('[C13] many states are on their way at once, and each is sent again until it was taken', async (t) => {
  const others = Array.from({ length: 500 }, (_, i) => `test.door/${i}`);
  const refused = new Set<string>();
  let underWay = 0;
  let most = 0;
  const { shared, clock, sent } = host({
    others,
    send: async (ref) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
      if (refused.has(ref)) return;
      refused.add(ref);
      throw new ClusterError('HF_CLUSTER_ISOLATED', { id: ref, ms: 1, outcome: 'it was not sent' });
    },
  });
  const done = shared.send(never);
  await clock.advance(60_000);
  t.true(await done);
  t.deepEqual([...sent].sort(), ['test.door/front', ...others].sort());
  t.true(most > 100 && most <= 128, `${most}`);
});

test('[C13] a state that is too large to be sent is not tried again, and the others do not wait for it', async (t) => {
  const { shared, sent } = host({
    others: ['test.door/back'],
    send: async (topic) => {
      if (topic === 'test.door/front')
        throw new ClusterError('HF_CLUSTER_MESSAGE_SIZE', { topic, bytes: 2, most: 1 });
    },
  });
  t.false(await shared.send(never));
  t.deepEqual(sent, ['test.door/back']);
});

test('[C13] of an actor that tells the others a part, that part is sent, and again when it was changed on its way', async (t) => {
  const told: Json[] = [];
  const change = (own: Map<string, ActorState>) =>
    void own.set('test.door/front', doorAt('test.door/front', 9));
  const { shared } = host({
    tell: ({ context: { order = 0 } }) => ({ newest: order, changed: order }),
    send: async (_ref, sent) => void told.push(isObject(sent) ? (sent.context ?? null) : sent),
    onSent: [change],
  });
  t.true(await shared.send(never));
  t.deepEqual(told, [
    { newest: 4, changed: 4 },
    { newest: 9, changed: 9 },
  ]);
});

test('[C13] a host knows when it does not understand a state of another one', async (t) => {
  const { shared, clock, delivered } = host();
  const state = { machine: 'door', version: 1, value: 'open', context: { order: 5 }, at: clock.now() };
  const take = (state: Json) => shared.take({ from: 'attic', version: '9.0.0', ref: 'test.door/bad', state });
  t.false(await take('nothing'));
  t.false(await take({ ...state, version: 9 }), 'its machine has another version');
  t.deepEqual(delivered, []);
  t.true(await take(state));
  t.is(delivered.length, 1);
});

test('[C13] a state of another host waits until the log has room, and meets the actor as it is then', async (t) => {
  const room = Promise.withResolvers<void>();
  const { shared, clock, delivered, own } = host({ room: room.promise });
  const state = { machine: 'door', version: 1, value: 'open', context: { order: 5 }, at: clock.now() };
  const taken = shared.take({ from: 'attic', version: '1.0.0', ref: 'test.door/front', state });
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(delivered, []);
  own.set('test.door/front', doorAt('test.door/front', 5));
  room.resolve();
  t.true(await taken);
  t.deepEqual(delivered, [], 'it knows that by now');
});
