import test from 'ava';
import {
  encodeShared,
  type Outcome,
  REACH,
  type SharedBody,
  SharedOrder,
} from '../../../../src/plugins/cluster/messages/shared-order.ts';
import { PROTOCOL } from '../../../../src/plugins/cluster/nats/body.ts';

type Seen = SharedBody['seen'];

const seenAt = (seq: number, epoch = 0, incarnation = 'one'): Seen => ({ incarnation, seq, epoch });

function bytes(id: string, seen: Seen, topic = 'keys.revoked'): Buffer {
  return encodeShared({
    kind: 'messages',
    ...{ protocol: PROTOCOL, version: '1.0.0', id, from: 'a', seen },
    topic,
    messages: [{ payload: { key: id }, correlation: 'c' }],
  });
}

const orderAt = (seq: number, epoch = 0) => (epoch * 2 ** 35 + seq) * 64;

function begun(): SharedOrder {
  const order = new SharedOrder();
  order.begin('one');
  return order;
}

function accepted(outcome: Outcome): [string, number] {
  if (outcome.kind !== 'accepted') throw new Error(`it is ${outcome.kind}`);
  return [outcome.body.id, outcome.order];
}

const reasonOf = (outcome: Outcome) => (outcome.kind === 'dropped' ? outcome.reason : 'none');

test('[C13] messages to every host have the order of the stream', (t) => {
  const order = begun();
  t.deepEqual(accepted(order.take({ seq: 1, body: bytes('m1', seenAt(0)) })), ['m1', orderAt(1)]);
  t.deepEqual(accepted(order.take({ seq: 2, body: bytes('m2', seenAt(0)) })), ['m2', orderAt(2)]);
  t.throws(() => order.take({ seq: 4, body: bytes('m4', seenAt(2)) }), { instanceOf: RangeError });
  t.is(order.order, orderAt(2));
});

test('[C13] what is stored twice is delivered once, also after a restart', (t) => {
  const order = begun();
  const body = bytes('m1', seenAt(0));
  order.take({ seq: 1, body });
  t.is(reasonOf(order.take({ seq: 2, body })), 'repeated');
  const restarted = new SharedOrder(order.place);
  t.is(reasonOf(restarted.take({ seq: 3, body })), 'repeated');
});

test('[C13] an old message that is stored again later is dropped by every host', (t) => {
  const order = begun();
  const old = bytes('m1', seenAt(0));
  order.take({ seq: 1, body: old });
  for (let seq = 2; seq <= REACH; seq += 1) order.take({ seq, body: bytes(`m${seq}`, seenAt(seq - 1)) });
  t.is(reasonOf(new SharedOrder(order.place).take({ seq: REACH + 1, body: old })), 'repeated');
  order.take({ seq: REACH + 1, body: bytes('last', seenAt(REACH)) });
  // Forgotten by the trail now, and too far behind what its sender knew.
  t.is(reasonOf(order.take({ seq: REACH + 2, body: old })), 'late');
  t.is(order.remembered.last - order.remembered.first + 1, REACH);
});

test('[C13] a message of a stream that was deleted does not count on its successor', (t) => {
  const order = begun();
  const old = bytes('m1', seenAt(0));
  order.take({ seq: 1, body: old });
  order.rewind('two', 0);
  t.is(reasonOf(order.take({ seq: 1, body: old })), 'late');
});

test('[C13] after the stream was made anew, orders are above all that were seen', (t) => {
  const order = begun();
  for (let seq = 1; seq <= 5; seq += 1) order.take({ seq, body: bytes(`m${seq}`, seenAt(seq - 1)) });
  const before = order.order;
  order.rewind('two', 0);
  const [, first] = accepted(order.take({ seq: 1, body: bytes('n1', seenAt(0, 1, 'two')) }));
  const [, second] = accepted(order.take({ seq: 2, body: bytes('n2', seenAt(0, 1, 'two')) }));
  t.true(first > before);
  t.is(second, first + 64, 'each of the messages that may stand at one place has an order of its own');
  t.true(Number.isSafeInteger(orderAt(2 ** 35 - 1, 4_095) + 63));
});

test('[C13] a host that knows of fewer beginnings takes the count of the others over, and its orders still only rise', (t) => {
  const fresh = new SharedOrder();
  fresh.begin('four');
  const [, own] = accepted(fresh.take({ seq: 1, body: bytes('m1', seenAt(0, 0, 'four')) }));
  const [, later] = accepted(fresh.take({ seq: 2, body: bytes('m2', seenAt(1, 3, 'four')) }));
  const [, next] = accepted(fresh.take({ seq: 3, body: bytes('m3', seenAt(2, 0, 'four')) }));
  t.deepEqual([own, later, next], [orderAt(1), orderAt(2, 3), orderAt(3, 3)]);
});

test('[C13] a stream that lost its end is told by its content', (t) => {
  const order = begun();
  const stored = Array.from({ length: 6 }, (_, i) => bytes(`m${i + 1}`, seenAt(i)));
  for (const [i, body] of stored.entries()) order.take({ seq: i + 1, body });
  const other = bytes('other', seenAt(4));
  t.true(order.matches({ seq: 4, body: stored[3] ?? other }));
  t.false(order.matches({ seq: 5, body: other }));
  t.is(order.matches({ seq: 7, body: other }), undefined);
  order.rewind('one', 4);
  t.deepEqual(order.remembered, { first: 1, last: 4 });
  t.true(order.matches({ seq: 4, body: stored[3] ?? other }));
  const [, place] = accepted(order.take({ seq: 5, body: other }));
  t.is(place, orderAt(5, 1));
  // Its sender knew the end that was lost: nobody delivers it, and it is sent anew.
  t.is(reasonOf(order.take({ seq: 6, body: bytes('lost', seenAt(6)) })), 'late');
});

test('[C13] places that the stream dropped are left out', (t) => {
  const order = begun();
  order.take({ seq: 1, body: bytes('m1', seenAt(0)) });
  order.skipTo(3_000);
  t.is(order.matches({ seq: 3_000, body: bytes('m1', seenAt(0)) }), undefined);
  t.deepEqual(accepted(order.take({ seq: 3_001, body: bytes('m2', seenAt(3_000)) })), ['m2', orderAt(3_001)]);
});

test('[C13] what this version does not understand is told with its sender, once, and counted as a place', (t) => {
  const order = begun();
  const message = JSON.parse(bytes('m1', seenAt(0)).toString()) as object;
  const wrong = [
    Buffer.from('no JSON'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from(JSON.stringify({ ...message, kind: 'later' })),
    Buffer.from(JSON.stringify({ ...message, topic: 1 })),
    Buffer.from(
      JSON.stringify({ ...message, messages: [{ payload: 'x'.repeat(64 * 1024), correlation: 'c' }] }),
    ),
    Buffer.from(JSON.stringify({ ...message, messages: [] })),
    Buffer.from(JSON.stringify({ ...message, messages: Array(65).fill({ payload: 1, correlation: 'c' }) })),
    Buffer.from(`{"payload":${'['.repeat(100)}${']'.repeat(100)}}`),
  ];
  const senders = wrong.map((body, i) => {
    const outcome = order.take({ seq: i + 1, body });
    return outcome.kind === 'foreign' ? outcome.sender?.from : outcome;
  });
  t.deepEqual(senders, [undefined, undefined, 'a', 'a', 'a', 'a', 'a', undefined]);
  const theirs = Buffer.from(
    JSON.stringify({ protocol: 2, version: '9.0.0', from: 'b', news: 'of another kind' }),
  );
  const sender = { protocol: 2, version: '9.0.0', from: 'b' };
  t.deepEqual(order.take({ seq: 9, body: theirs }), { kind: 'foreign', sender });
  t.is(reasonOf(order.take({ seq: 10, body: theirs })), 'repeated');
  t.deepEqual(accepted(order.take({ seq: 11, body: bytes('last', seenAt(10)) })), ['last', orderAt(11)]);
});

test('[C13] a message has at most 64 KiB, a state 512 KiB', (t) => {
  const head = { protocol: PROTOCOL, version: '1.0.0', id: 'm', from: 'a', seen: seenAt(0) };
  const message = (size: number): SharedBody => ({
    ...head,
    kind: 'messages',
    topic: 't',
    messages: [{ payload: 'x'.repeat(size), correlation: '' }],
  });
  t.truthy(encodeShared(message(65_000)));
  t.throws(() => encodeShared(message(65_536)), { code: 'HF_CLUSTER_MESSAGE_SIZE' });
  const state: SharedBody = { ...head, kind: 'state', ref: 'a/b', state: 'x'.repeat(500_000) };
  const body = encodeShared(state);
  const outcome = begun().take({ seq: 1, body });
  t.deepEqual(outcome, { kind: 'accepted', body: state, order: orderAt(1) });
});
