import { readdirSync } from 'node:fs';
import test from 'ava';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { Outgoing } from '../../../../src/plugins/cluster/messages/outgoing.ts';
import { SharedOrder } from '../../../../src/plugins/cluster/messages/shared-order.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink, silent, strangersKey, streamSettings } from '../../../support/cluster.ts';
import { clusterName, type MessageHost, openHost } from '../../../support/message-hosts.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { Scope } from '../../../support/scope.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);

async function hosts(t: Scope, names: readonly string[], name = clusterName()): Promise<MessageHost[]> {
  return Promise.all(names.map((host) => openHost(t, nats().url(), host, { name, withinMs: 60_000 })));
}

/**
 * Nobody may read the stream meanwhile, because nats-server 2.9.10 ends with a panic then. It removes the files later, also those of a
 * new stream of the same name, so this waits until they are gone.
 */
async function deleteStream({ link }: MessageHost, name: string): Promise<void> {
  await (await link.manager()).streams.delete(`HF_${name}_SHARED`);
  const files = () => readdirSync(nats().storeOf(0), { recursive: true, encoding: 'utf8' });
  await until('its files are gone', () => !files().some((file) => file.includes(`HF_${name}_SHARED`)));
}

const ids = ({ messages }: MessageHost) => messages.map(({ correlation }) => correlation);
const orders = ({ messages }: MessageHost) => messages.map(({ order }) => order ?? 0);
const isRising = (numbers: readonly number[]) =>
  numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? 0));
const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test.serial(
  '[C13] every host delivers the messages of all in one order, with the time of the server',
  async (t) => {
    const [a, b, c] = (await hosts(t, ['a', 'b', 'c'])) as [MessageHost, MessageHost, MessageHost];
    const beganAt = Date.now();
    const sent = [a, b, c].flatMap((host) => numbered(host.host, 30).map((id) => ({ host, id })));
    await Promise.all(sent.map(({ host, id }) => host.send(id, `payload of ${id}`)));
    await until('all have all', () => [a, b, c].every(({ messages }) => messages.length === 90));
    t.deepEqual(b.messages, a.messages);
    t.deepEqual(c.messages, a.messages);
    t.true(isRising(orders(a)), 'each has a place of its own');
    // One host's messages keep their order.
    for (const { host } of [a, b, c])
      t.deepEqual(
        ids(a).filter((id) => id.startsWith(host)),
        numbered(host, 30),
      );
    const [first] = a.messages;
    t.is(first?.payload, `payload of ${first?.correlation}`);
    const sentAt = first?.sentAt ?? 0;
    t.true(
      sentAt > beganAt - 1_000 && sentAt < Date.now() + 1_000,
      'the clock of this machine is the one of the server',
    );
  },
);

test.serial(
  '[C13] a host that comes back goes on behind what it delivered; a new one begins with the oldest message',
  async (t) => {
    const name = clusterName();
    const [a, b] = (await hosts(t, ['a', 'b'], name)) as [MessageHost, MessageHost];
    await a.send('m1');
    await until('b has it', () => b.messages.length === 1);
    await b.stop();
    await a.send('m2');
    await a.send('m3');
    const again = await openHost(t, nats().url(), 'b', { name, place: b.place });
    const fresh = await openHost(t, nats().url(), 'c', { name });
    await until('they have read on', () => [again, fresh].every((host) => ids(host).includes('m3')));
    t.deepEqual(ids(again), ['m2', 'm3']);
    t.deepEqual(ids(fresh), ['m1', 'm2', 'm3']);
    t.deepEqual(again.messages, fresh.messages.slice(1), 'in the places that they have for everybody');
  },
);

test.serial(
  '[C13] a message that a host cannot take is tried again and holds up those behind it',
  async (t) => {
    let failures = 2;
    const host = await openHost(t, nats().url(), 'a', {
      name: clusterName(),
      withinMs: 60_000,
      deliver: () => {
        failures -= 1;
        if (failures >= 0) throw new Error('the log is full');
      },
    });
    await Promise.all([host.send('m1'), host.send('m2')]);
    t.deepEqual(ids(host), ['m1', 'm2']);
  },
);

test.serial('[C13] what waits for an earlier message of its topic goes to the stream together', async (t) => {
  const name = clusterName();
  const proxy = await nats().proxyTo(0);
  const slow = await openHost(t, proxy.url, 'slow', { name });
  const other = await openHost(t, nats().url(), 'other', { name });
  await slow.send('first');
  await until('the other one has it', () => other.messages.length === 1);
  const { seq } = other.everyHost.place;
  proxy.set({ delayMs: 100, loss: 0.05 });
  const beganAt = performance.now();
  await Promise.all(numbered('revoked', 30).map((id) => slow.send(id)));
  await until('the other one has all', () => other.messages.length === 31);
  const tookMs = Math.round(Math.max(...other.at.values()) - beganAt);
  t.log(`all were there after ${tookMs} ms, over a link with a round trip of 200 ms and 5 % loss`);
  t.is(other.everyHost.place.seq, seq + 2, 'the first one, and all others');
  t.deepEqual(ids(other), ['first', ...numbered('revoked', 30)]);
  t.deepEqual(other.messages, slow.messages);
  t.true(isRising(orders(other)));
});

test.serial('[C13] a message that is too large is refused, and the next one goes', async (t) => {
  const [a] = (await hosts(t, ['a'])) as [MessageHost];
  await t.throwsAsync(a.send('large', 'x'.repeat(65_536)), { code: 'HF_CLUSTER_MESSAGE_SIZE' });
  await Promise.all(numbered('m', 5).map((id) => a.send(id, 'x'.repeat(50_000))));
  t.deepEqual(ids(a), numbered('m', 5), 'each at a place of its own');
});

test.serial(
  '[C13] of messages that were sent together, those before one that cannot be taken are taken once',
  async (t) => {
    const name = clusterName();
    let failures = 2;
    const b = await openHost(t, nats().url(), 'b', {
      name,
      deliver: ({ correlation }) => {
        if (correlation === 'm2') failures -= 1;
        if (correlation === 'm2' && failures >= 0) throw new Error('the log is full');
        if (correlation === 'm3')
          throw new HostError('HF_PLUGIN_MESSAGE', { host: 'a', topic: 't', reason: 'it is new' });
      },
    });
    const a = await openHost(t, nats().url(), 'a', { name, withinMs: 60_000 });
    await Promise.all(numbered('m', 6).map((id) => a.send(id)));
    await until('b has the last one', () => ids(b).includes('m5'));
    t.deepEqual(ids(b), ['m0', 'm1', 'm2', 'm4', 'm5']);
    t.is(b.broken.length, 1);
    t.is(b.everyHost.place.seq, a.everyHost.place.seq);
    t.deepEqual(
      b.messages,
      a.messages.filter(({ correlation }) => correlation !== 'm3'),
    );
  },
);

test.serial(
  '[C13] messages after the stream was deleted have orders above all before, on hosts that saw it and on new ones',
  async (t) => {
    const name = clusterName();
    const before = (await hosts(t, ['a', 'b'], name)) as [MessageHost, MessageHost];
    for (const id of numbered('old', 5)) await before[0].send(id);
    await until('b has them', () => before[1].messages.length === 5);
    for (const host of before) await host.stop();
    await deleteStream(before[0], name);
    const reopen = async ({ host, place, messages }: MessageHost) => {
      const again = await openHost(t, nats().url(), host, { name, place, withinMs: 60_000 });
      again.messages.unshift(...messages);
      return again;
    };
    const [a, b] = [await reopen(before[0]), await reopen(before[1])];
    await Promise.all([a.send('new0'), b.send('new1')]);
    const c = await openHost(t, nats().url(), 'c', { name });
    await c.send('new2');
    await until('all have the new ones', () =>
      [a, b, c].every((host) => ['new0', 'new1', 'new2'].every((id) => ids(host).includes(id))),
    );
    for (const host of [a, b, c]) t.true(isRising(orders(host)), `${host.host}: ${orders(host)}`);
    t.deepEqual(a.messages.slice(-1), c.messages.slice(-1));
    t.deepEqual(a.broken, ['rewound 1 to 5']);
    t.deepEqual(c.broken, []);
  },
);

test.serial(
  '[C13] what made room on the stream is told as missed, and states of others take its place',
  async (t) => {
    const name = clusterName();
    const maxBytes = 8_192;
    const a = await openHost(t, nats().url(), 'a', { name, maxBytes, withinMs: 60_000 });
    for (const id of numbered('m', 10)) await a.send(id, 'x'.repeat(2_000));
    await a.everyHost.sendState('keys.key/one', { revoked: true });
    const b = await openHost(t, nats().url(), 'b', { name, maxBytes });
    await until('b has the state', () => b.states.length === 1);
    t.like(b.states, [{ from: 'a', ref: 'keys.key/one', state: { revoked: true } }]);
    t.is(b.states.length, 1);
    const [first = 0] = orders(b);
    t.true(first > 1 && isRising(orders(b)));
    t.deepEqual(b.broken, [`missed 1 to ${first / 64 - 1}`]);
  },
);

test.serial(
  '[C13] a message of nobody of the cluster, or sent a second time by a stranger, is delivered nowhere',
  async (t) => {
    const name = clusterName();
    const [a, b] = (await hosts(t, ['a', 'b'], name)) as [MessageHost, MessageHost];
    await a.send('genuine');
    const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
    const wanted = { name: `HF_${name}_SHARED`, subjects: [`hf.${name}.shared`], maxBytes: 64 * 1024 * 1024 };
    const stream = await LinearStream.open(
      stranger,
      { ...wanted, discard: 'old', replicas: 1 },
      { clock: systemClock, logger: silent },
    );
    await stream.append(JSON.stringify({ kind: 'message', id: 'x', from: 'a', topic: 't' }));
    const stored = await (await stranger.manager()).streams.getMessage(stream.name, { seq: 1 });
    if (!stored) throw new Error('there is no message');
    // Whoever can read the stream can store its bytes again, under another id.
    stored.header.delete('Nats-Msg-Id');
    await stranger.jetstream().publish(stored.subject, stored.data, { headers: stored.header });
    const raw = stranger.headers({ 'Hf-Mac': stored.header.get('Hf-Mac') });
    await stranger.jetstream().publish(stored.subject, stored.data, { headers: raw });
    await b.send('last');
    await until('a has the last one', () => ids(a).includes('last'));
    t.deepEqual(ids(a), ['genuine', 'last']);
    t.deepEqual(ids(b), ['genuine', 'last']);
    t.deepEqual([a.link.forged, b.link.forged], [3, 3]);
  },
);

test.serial(
  '[C13] without NATS a message is refused in time, and the error says whether it may still arrive',
  async (t) => {
    const host = await openHost(t, 'nats://127.0.0.1:9', 'a', {
      name: clusterName(),
      isAlone: true,
      withinMs: 50,
    });
    const error = await t.throwsAsync(host.send('m1'), { code: 'HF_CLUSTER_ISOLATED' });
    t.regex(error?.message ?? '', /it was not sent/);
    const waiting = Array.from({ length: 1_000 }, () =>
      t.throwsAsync(host.send('m'), { code: 'HF_CLUSTER_ISOLATED' }),
    );
    await t.throwsAsync(host.send('one too many'), { code: 'HF_CLUSTER_BUSY' });
    await Promise.all(waiting);
    await t.throwsAsync(host.send('there is room again'), { code: 'HF_CLUSTER_ISOLATED' });
    t.true(host.beats.standing().isIsolated);
    await host.stop();
    t.is(host.place, undefined, 'a host that has never found the stream has no place in it');
  },
);

test.serial(
  '[C13] a message does not wait for those of another topic, nor for states, of which many are on their way at once',
  async (t) => {
    const link = await openLink(t, nats().url());
    const stream = await LinearStream.open(link, streamSettings(), { clock: systemClock, logger: silent });
    const order = new SharedOrder({ incarnation: stream.incarnation, seq: 0, epoch: 0, trail: [] });
    const stored: string[] = [];
    const isOpen = Promise.withResolvers<void>();
    let underWay = 0;
    const append = stream.append.bind(stream);
    stream.append = async (body, options) => {
      const { kind, topic, messages = [] } = JSON.parse(body.toString());
      if (topic !== 'keys.changed') {
        underWay += 1;
        await isOpen.promise;
      }
      const stands = await append(body, options);
      if (kind === 'state') stored.push(kind);
      for (const { correlation } of messages) stored.push(correlation);
      return stands;
    };
    const options = { clock: systemClock, host: 'a', order, stream: () => stream, withinMs: 60_000 };
    const outgoing = new Outgoing({ ...options, onStored: () => {}, onDoubt: () => {} });
    t.teardown(() => outgoing.stop());
    const send = (id: string, topic: string) =>
      void outgoing
        .send({ kind: 'messages', topic, messages: [{ payload: 1, correlation: id }] })
        .catch(() => {});
    for (const id of numbered('slice', 20)) send(id, 'slices.wanted');
    for (const id of numbered('state', 500))
      void outgoing.send({ kind: 'state', ref: `keys.key/${id}`, state: 1 }).catch(() => {});
    for (const id of numbered('change', 3)) send(id, 'keys.changed');
    await until('the changes are stored', () => stored.length === 3);
    t.deepEqual(stored, numbered('change', 3));
    t.is(underWay, 1 + 128, 'one of the slices, and many states');
    isOpen.resolve();
    await until('all are stored', () => stored.length === 523);
    t.deepEqual(
      stored.filter((name) => name.startsWith('slice')),
      numbered('slice', 20),
    );
  },
);

test.serial(
  '[C13] a message that this host does not understand is told, is not tried again, and the next one comes',
  async (t) => {
    const name = clusterName();
    const a = await openHost(t, nats().url(), 'a', { name });
    const b = await openHost(t, nats().url(), 'b', {
      name,
      deliver: ({ from, topic, correlation }) => {
        if (correlation !== 'm1') return;
        throw new HostError('HF_PLUGIN_MESSAGE', { host: from, topic, reason: 'it is too long' });
      },
    });
    await a.send('m1');
    const stream = await LinearStream.open(
      a.link,
      {
        ...{ name: `HF_${name}_SHARED`, subjects: [`hf.${name}.shared`], maxBytes: 64 * 1024 * 1024 },
        ...{ discard: 'old', replicas: 1 },
      },
      { clock: systemClock, logger: silent },
    );
    await stream.append(JSON.stringify({ protocol: 2, version: '9.0.0', from: 'c', news: 1 }));
    await a.send('m2');
    await until('b has the last one', () => ids(b).includes('m2'));
    t.deepEqual(ids(b), ['m2']);
    t.is(b.broken.length, 2);
    t.regex(b.broken[0] ?? '', /^foreign: a The host a sent a message on tests\.topic .*: it is too long/);
    t.is(b.broken[1], 'foreign: c it is of another protocol');
    t.deepEqual(ids(a), ['m1', 'm2']);
  },
);

test.serial('[C13] that all was sent is not said on a stream that has lost what was sent', async (t) => {
  const link = await openLink(t, nats().url());
  const stream = await LinearStream.open(link, streamSettings(), { clock: systemClock, logger: silent });
  const order = new SharedOrder({ incarnation: stream.incarnation, seq: 0, epoch: 0, trail: [] });
  const options = { clock: systemClock, host: 'a', order, stream: () => stream, withinMs: 60_000 };
  const outgoing = new Outgoing({ ...options, onStored: () => {}, onDoubt: () => {} });
  t.teardown(() => outgoing.stop());
  const sent = outgoing.send({ kind: 'sent', rounds: ['one'] });
  await until('it is stored', async () => (await stream.last()).seq === 1);
  order.rewind(stream.incarnation, 0);
  outgoing.again();
  await t.throwsAsync(sent, { code: 'HF_CLUSTER_ISOLATED' });
});

test.serial('[C13] a beat of another host that has more says that there is something to read', async (t) => {
  const name = clusterName();
  const a = await openHost(t, nats().url(), 'a', { name });
  const b = await openHost(t, nats().url(), 'b', { name, pollMs: 3_600_000, isDeaf: true });
  await b.everyHost.mark(); // it has looked once
  await a.send('m1');
  await until('b has it', () => b.messages.length === 1);
  t.deepEqual(ids(b), ['m1']);
});

test.serial('[C13] a host that does not come to the end of a flood knows that it is behind', async (t) => {
  const name = clusterName();
  const proxy = await nats().proxyTo(0);
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const a = await openHost(t, proxy.url, 'a', { name });
  await a.send('first');
  t.is(a.everyHost.behindMs, undefined);
  proxy.set({ delayMs: 100 });
  for (let i = 0; i < 2_000; i += 1) stranger.connected().publish(`hf.${name}.shared`, 'x');
  await stranger.connected().flush();
  await until('it is behind', () => a.everyHost.behindMs !== undefined);
  t.true((a.everyHost.behindMs ?? 0) > 1_000);
  proxy.heal();
  await until('it has read all', () => a.everyHost.behindMs === undefined);
  await a.send('last');
  t.deepEqual(ids(a), ['first', 'last'], 'the flood is behind it');
});

test.serial('[C13] a message that was not taken before the stop comes again at the next start', async (t) => {
  const name = clusterName();
  let attempts = 0;
  const a = await openHost(t, nats().url(), 'a', {
    name,
    deliver: ({ correlation }) => {
      if (correlation !== 'm2') return;
      attempts += 1;
      throw new Error('the log is full');
    },
  });
  await a.send('m1');
  const second = t.throwsAsync(a.send('m2'), {
    code: 'HF_CLUSTER_ISOLATED',
    message: /it was acknowledged, and may still arrive/,
  });
  await until('it was tried', () => attempts > 0);
  t.is(a.everyHost.place.seq, 1);
  await a.stop();
  await second;
  t.is(a.place?.seq, 1);
  const again = await openHost(t, nats().url(), 'a', { name, place: a.place });
  await until('it comes again', () => again.messages.length === 1);
  t.deepEqual(ids(again), ['m2']);
});

test.serial(
  '[C13] a host whose log takes nothing stops all the same; what waits there, and what is behind it, comes at the next start',
  async (t) => {
    const name = clusterName();
    const a = await openHost(t, nats().url(), 'a', { name });
    const waiting: string[] = [];
    const full = await openHost(t, nats().url(), 'full', {
      name,
      deliver: ({ correlation }) => {
        waiting.push(correlation);
        return correlation === 'm1' ? Promise.resolve() : new Promise(() => {});
      },
    });
    for (const id of numbered('m', 4).slice(1)) await a.send(id);
    await until('it waits', () => waiting.includes('m2') && full.everyHost.behindMs !== undefined);
    await full.stop();
    t.deepEqual([ids(full), waiting, full.place?.seq], [['m1'], ['m1', 'm2'], 1]);
    const again = await openHost(t, nats().url(), 'full', { name, place: full.place });
    await until('they come', () => again.messages.length === 2);
    t.deepEqual(ids(again), ['m2', 'm3']);
  },
);

test.serial(
  '[C13] a message that every host drops, because its sender knew an end that was lost, is written anew',
  async (t) => {
    const link = await openLink(t, nats().url());
    const stream = await LinearStream.open(link, streamSettings(), { clock: systemClock, logger: silent });
    const order = new SharedOrder({ incarnation: stream.incarnation, seq: 50, epoch: 1, trail: [] });
    const options = { clock: systemClock, host: 'a', order, stream: () => stream, withinMs: 60_000 };
    const outgoing = new Outgoing({ ...options, onStored: () => {}, onDoubt: () => {} });
    const message = { payload: 1, correlation: 'c' };
    const sent = outgoing.send({ kind: 'messages', topic: 't', messages: [message] });
    const reader = new SharedOrder();
    reader.begin(stream.incarnation);
    const stored = async (seq: number) => {
      await until(`message ${seq} is stored`, async () => (await stream.last()).seq >= seq);
      const message = await stream.get(seq);
      if (!message) throw new Error('it is not there');
      return message;
    };
    const first = reader.take(await stored(1));
    if (first.kind !== 'dropped' || first.reason !== 'late') throw new Error(`it is ${first.kind}`);
    order.rewind(stream.incarnation, 1);
    outgoing.late(first.id);
    const second = reader.take(await stored(2));
    if (second.kind !== 'accepted') throw new Error(`it is ${second.kind}`);
    t.is(second.order, (2 * 2 ** 35 + 2) * 64);
    outgoing.delivered(first.id);
    t.is(outgoing.waiting, 1, 'what was dropped is delivered nowhere');
    outgoing.delivered(second.body.id);
    await sent;
  },
);

test.serial(
  '[C13] what was written for a stream that was made anew meanwhile arrives at every host all the same',
  async (t) => {
    const name = clusterName();
    const a = await openHost(t, nats().url(), 'a', {
      name,
      withinMs: 60_000,
      pollMs: 3_600_000,
      isDeaf: true,
    });
    await a.everyHost.mark(); // it has looked once
    const manager = await a.link.manager();
    const { config } = await manager.streams.info(`HF_${name}_SHARED`);
    await deleteStream(a, name);
    await manager.streams.add(config);
    await a.send('new'); // nothing has told this host
    const b = await openHost(t, nats().url(), 'b', { name });
    await until('b has it', () => b.messages.length > 0);
    t.deepEqual(ids(b), ['new']);
    t.true(isRising(orders(a)));
  },
);
