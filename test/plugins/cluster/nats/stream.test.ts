import type { StoredMsg, StreamConfig } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import test from 'ava';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { EXPECTED_LAST, Seal } from '../../../../src/plugins/cluster/nats/seal.ts';
import {
  LinearStream,
  type StreamDependencies,
  type StreamMessage,
} from '../../../../src/plugins/cluster/nats/stream.ts';
import {
  StreamConflict,
  StreamFull,
  StreamGap,
  StreamGone,
} from '../../../../src/plugins/cluster/nats/stream-errors.ts';
import { openStored } from '../../../../src/plugins/cluster/nats/stream-message.ts';
import { configOf } from '../../../../src/plugins/cluster/nats/stream-settings.ts';
import { clusterKey, openLink, silent, strangersKey, streamSettings } from '../../../support/cluster.ts';
import { startNats } from '../../../support/nats.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { Scope } from '../../../support/scope.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);
const dependencies: StreamDependencies = { clock: systemClock, logger: silent };

async function fresh(t: Scope, wish: Parameters<typeof streamSettings>[0] = {}) {
  const link = await openLink(t, nats().url());
  const settings = streamSettings(wish);
  const stream = await LinearStream.open(link, settings, dependencies);
  return { link, settings, stream };
}

/** A stream as somebody made it who manages the servers: with settings that no host gives one. */
async function foreign(t: Scope, wish: Partial<StreamConfig>) {
  const link = await openLink(t, nats().url());
  const { name, ...config } = configOf(streamSettings(), false);
  await (await link.manager()).streams.add({ ...config, ...wish, name });
  const stream = await LinearStream.existing(link, name, dependencies);
  if (!stream) throw new Error(`there is no stream ${name}`);
  return { link, stream };
}

async function all(messages: AsyncIterable<StreamMessage>): Promise<string[]> {
  const bodies: string[] = [];
  for await (const { seq, body } of messages) bodies.push(`${seq} ${body}`);
  return bodies;
}

test('[C13] messages are appended in order, many at once, and read in order', async (t) => {
  const { stream } = await fresh(t);
  const numbers = Array.from({ length: 1_000 }, (_, i) => i);
  const acks = await Promise.all(
    numbers.map((i) => stream.append(`m${i}`, { expectedLast: i, id: `id${i}` })),
  );
  t.deepEqual(
    acks.map(({ seq }) => seq),
    numbers.map((i) => i + 1),
  );
  t.deepEqual(
    await all(stream.read(1)),
    numbers.map((i) => `${i + 1} m${i}`),
  );
  t.deepEqual(await all(stream.read(999)), ['999 m998', '1000 m999']);
  t.deepEqual(await all(stream.read(1001)), []);
  t.is((await stream.last()).seq, 1_000);
});

test('[C13] of two writers with one expectation one wins, and the other learns where the stream ends', async (t) => {
  const { stream, settings } = await fresh(t);
  const other = await LinearStream.open(await openLink(t, nats().url()), settings, dependencies);
  for (let last = 0; last < 20; last += 1) {
    const results = await Promise.allSettled([
      stream.append('a', { expectedLast: last }),
      other.append('b', { expectedLast: last }),
    ]);
    const [lost] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    t.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
    t.true(lost instanceof StreamConflict);
    t.is(lost.lastSeq, last + 1);
  }
});

test('[C13] after a hole in what one writer sends, nothing behind it is stored', async (t) => {
  const { stream } = await fresh(t);
  const sent = [0, 1, 3, 4].map((i) => stream.append(`m${i}`, { expectedLast: i }));
  const results = await Promise.allSettled(sent);
  t.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  );
  t.is((await stream.last()).seq, 2);
});

test('[C13] a repetition within the window is known by its id, also with an old expectation', async (t) => {
  const { stream } = await fresh(t);
  await stream.append('a', { id: 'one', expectedLast: 0 });
  await stream.append('b', { id: 'two', expectedLast: 1 });
  t.deepEqual(await stream.append('a', { id: 'one', expectedLast: 0 }), { seq: 1, duplicate: true });
  t.is((await stream.last()).seq, 2);
});

test('[C13] after the window a repetition conflicts with its expectation', async (t) => {
  const { stream } = await foreign(t, { duplicate_window: 100_000_000 });
  await stream.append('a', { id: 'one', expectedLast: 0 });
  await until('the id is forgotten', async () => {
    const result = await stream.append('a', { id: 'one', expectedLast: 0 }).catch((error: unknown) => error);
    return result instanceof StreamConflict;
  });
  t.is((await stream.last()).seq, 1);
});

test('[C13] a full stream refuses what is new and keeps what it has', async (t) => {
  const { stream } = await fresh(t, { maxBytes: 64 * 1024 });
  let last = 0;
  const error = await t.throwsAsync(async () => {
    for (; last < 100; last += 1) await stream.append(Buffer.alloc(4_096), { expectedLast: last });
  });
  t.true(error instanceof StreamFull);
  t.true(last > 5 && last < 100);
  const { seq, firstSeq } = await stream.last();
  t.deepEqual({ seq, firstSeq }, { seq: last, firstSeq: 1 });
});

test('[C13] a stream that keeps the newest says which messages made room', async (t) => {
  const { stream } = await fresh(t, { discard: 'old', maxMessages: 5 });
  for (let i = 0; i < 12; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  const { seq, firstSeq } = await stream.last();
  t.deepEqual({ seq, firstSeq }, { seq: 12, firstSeq: 8 });
  const error = await t.throwsAsync(all(stream.read(1)));
  t.true(error instanceof StreamGap);
  t.deepEqual([(error as StreamGap).seq, (error as StreamGap).firstSeq], [1, 8]);
  t.is((await all(stream.read(8))).length, 5);
});

test('[C13] a message that was deleted in the middle is a gap, never skipped', async (t) => {
  const { stream, link } = await foreign(t, { deny_delete: false });
  for (let i = 0; i < 300; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  await (await link.manager()).streams.deleteMessage(stream.name, 150);
  const read: string[] = [];
  const error = await t.throwsAsync(async () => {
    for await (const { body } of stream.read(1)) read.push(`${body}`);
  });
  t.true(error instanceof StreamGap);
  t.is((error as StreamGap).seq, 150);
  t.is(read.length, 149);
  const handed: number[] = [];
  const fault = await new Promise((resolve) => {
    const follower = stream.follow(1, ({ seq }) => void handed.push(seq), { onFault: resolve, pollMs: 20 });
    t.teardown(() => follower.end());
  });
  t.true(fault instanceof StreamGap);
  t.is(handed.length, 149);
});

test('[C13] messages of a stream can be deleted by nobody who may only write', async (t) => {
  const { stream, link } = await fresh(t);
  await stream.append('a', { expectedLast: 0 });
  await t.throwsAsync(async () => (await link.manager()).streams.deleteMessage(stream.name, 1));
  await t.throwsAsync(stream.removeBefore(2), { code: 'HF_CLUSTER_STREAM_REFUSED' });
});

test('[C13] what makes room by hand is gone, and the stream says from where on it is whole', async (t) => {
  const { stream } = await fresh(t, { isTrimmed: true });
  for (let i = 0; i < 5; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  await stream.removeBefore(4);
  t.is((await stream.last()).firstSeq, 4);
  t.deepEqual(await all(stream.read(4)), ['4 m3', '5 m4']);
});

test('[C13] a stream with other settings is refused with each of them; another size is not', async (t) => {
  const { link, settings } = await fresh(t);
  const open = (wish: object) => LinearStream.open(link, { ...settings, ...wish }, dependencies);
  const error = await t.throwsAsync(open({ discard: 'old', isTrimmed: true }), {
    code: 'HF_CLUSTER_STREAM_DIFFERS',
  });
  t.regex(error?.message ?? '', /discard is new, not old/);
  t.regex(error?.message ?? '', /deny_purge is true, not false/);
  t.is((await open({ maxBytes: 1024 * 1024 })).name, settings.name);
  const manager = await link.manager();
  await manager.streams.update(settings.name, { allow_direct: true });
  await t.throwsAsync(open({}), {
    code: 'HF_CLUSTER_STREAM_DIFFERS',
    message: /allow_direct is true, not false/,
  });
});

test('[C13] a stream with fewer copies than wanted is refused where one server would stand for a quorum', async (t) => {
  const { link, settings } = await fresh(t);
  const open = (wish: object) => LinearStream.open(link, { ...settings, ...wish }, dependencies);
  await t.notThrowsAsync(open({ replicas: 3 }));
  await t.throwsAsync(open({ replicas: 3, needsCopies: true }), {
    code: 'HF_CLUSTER_STREAM_DIFFERS',
    message: /num_replicas is 1, not 3/,
  });
  await t.notThrowsAsync(open({ needsCopies: true }));
});

test('[C13] several hosts that make one stream at once all open it', async (t) => {
  const settings = streamSettings();
  const link = await openLink(t, nats().url());
  const opened = await Promise.all(
    Array.from({ length: 5 }, () => LinearStream.open(link, settings, dependencies)),
  );
  t.is(new Set(opened.map(({ incarnation }) => incarnation)).size, 1);
  t.deepEqual(await LinearStream.names(link, settings.subjects[0] ?? ''), [settings.name]);
  t.is(await LinearStream.existing(link, 'HF_none', dependencies), undefined);
});

test('[C13] who has no key writes nothing that counts, and repeats nothing that did', async (t) => {
  const { stream, link, settings } = await fresh(t);
  const [subject = ''] = settings.subjects;
  await stream.append('genuine', { expectedLast: 0 });
  const stranger = await openLink(t, nats().url(), { key: strangersKey() });
  await (await LinearStream.open(stranger, settings, dependencies)).append('of another key');
  const plain = stranger.jetstream();
  await plain.publish(subject, 'without any code');
  const stored = await (await stranger.manager()).streams.getMessage(settings.name, { seq: 1 });
  // The server checks the expectation, so it has to be left out, and with it a part of what the code vouches for.
  const repeated = stranger.headers({ 'Hf-Mac': stored?.header.get('Hf-Mac') ?? '' });
  await plain.publish(subject, stored?.data, { headers: repeated });
  await stream.append('genuine, too', { expectedLast: 4 });
  t.deepEqual(await all(stream.read(1)), ['1 genuine', '5 genuine, too']);
  t.is(link.forged, 3, 'where health and status see it');
  t.is(await stream.get(2), undefined);
  t.is(`${(await stream.get(5))?.body}`, 'genuine, too');
  const followed: string[] = [];
  const follower = stream.follow(1, ({ body }) => void followed.push(`${body}`), { pollMs: 20 });
  t.teardown(() => follower.end());
  await until('both were handed on', () => followed.length === 2);
  t.deepEqual(followed, ['genuine', 'genuine, too']);
  t.is(link.forged, 3, 'however often they are read');
});

test('[C13] headers that cannot be read, or are too large, are skipped and counted, and stop no reader', async (t) => {
  const { stream, link, settings } = await fresh(t);
  const [subject = ''] = settings.subjects;
  const many = Array.from({ length: 4_000 }, (_, i) => `h${i}: x`).join('\r\n');
  for (const lines of ['a name: x', 'a: x\ny', many]) {
    const block = Buffer.from(`NATS/1.0\r\n${lines}\r\n\r\n`);
    await link
      .jetstream()
      .publish(subject, 'x', { headers: Object.assign(headers(), { encode: () => block }) });
  }
  await stream.append('genuine', { expectedLast: 3 });
  t.deepEqual(await all(stream.read(1)), ['4 genuine']);
  t.is(link.forged, 3);
  const followed: number[] = [];
  const follower = stream.follow(1, ({ seq }) => void followed.push(seq), { pollMs: 20 });
  t.teardown(() => follower.end());
  await until('it was handed on', () => followed.length === 1);
  t.deepEqual(followed, [4]);
});

test('[C13] a message counts on the stream that it was written for, not on a later one of the same name', async (t) => {
  const { stream, link, settings } = await fresh(t);
  await stream.append('first', { expectedLast: 0 });
  const manager = await link.manager();
  const stored = await manager.streams.getMessage(settings.name, { seq: 1 });
  await manager.streams.delete(settings.name);
  const again = await LinearStream.open(link, settings, dependencies);
  t.not(again.incarnation, stream.incarnation);
  await link
    .jetstream()
    .publish(settings.subjects[0] ?? '', stored?.data, { ...(stored && { headers: stored.header }) });
  t.deepEqual(await all(again.read(1)), []);
  t.is(link.forged, 1);
});

test('[C13] a stream that was deleted, or made anew, is gone for who had opened it', async (t) => {
  const { stream, link, settings } = await fresh(t);
  await stream.append('a', { expectedLast: 0 });
  await (await link.manager()).streams.delete(settings.name);
  await t.throwsAsync(stream.last(), { instanceOf: StreamGone });
  await t.throwsAsync(stream.append('b', { expectedLast: 1 }), { code: 'HF_CLUSTER_STREAM_UNAVAILABLE' });
  await LinearStream.open(link, settings, dependencies);
  const conflict = await t.throwsAsync(stream.append('b', { expectedLast: 1 }), {
    instanceOf: StreamConflict,
  });
  t.is((conflict as StreamConflict).lastSeq, 0);
  await t.throwsAsync(stream.last(), { instanceOf: StreamGone });
  await t.throwsAsync(all(stream.read(1)), { instanceOf: StreamGone });
  const fault = await new Promise((resolve) => {
    const follower = stream.follow(2, () => {}, { onFault: resolve, pollMs: 20 });
    t.teardown(() => follower.end());
  });
  t.true(fault instanceof StreamGone);
});

test('[C13] nothing is appended to another stream that has taken the subjects', async (t) => {
  const { stream, link, settings } = await fresh(t);
  await (await link.manager()).streams.delete(settings.name);
  const other = await LinearStream.open(link, streamSettings({ subjects: settings.subjects }), dependencies);
  await t.throwsAsync(stream.append('a', { expectedLast: 0 }), { instanceOf: StreamGone });
  t.is((await other.last()).seq, 0);
});

test('[C13] a stream that the disks of the servers have no room for is refused', async (t) => {
  const small = await startNats(t, { storeBytes: 1024 * 1024 });
  const link = await openLink(t, small.url());
  await t.throwsAsync(LinearStream.open(link, streamSettings(), dependencies), { instanceOf: StreamFull });
  const three = streamSettings({ maxBytes: 4_096, replicas: 3 });
  await t.throwsAsync(LinearStream.open(link, three, dependencies), { code: 'HF_CLUSTER_STREAM_REFUSED' });
});

test('[C13] a message counts only where its expectation says that it stands', (t) => {
  const seal = new Seal(clusterKey, 'a stream');
  const message = { subject: 'a', body: Buffer.from('b'), headers: { [EXPECTED_LAST]: '6' } };
  const sealed = Object.entries(seal.add(message));
  const header = headers();
  for (const [name, value] of sealed) header.set(name, value);
  const stored = (seq: number): StoredMsg => ({
    ...{
      subject: 'a',
      data: message.body,
      header,
      seq,
      time: new Date(0),
      timestamp: '',
      pending: 0,
      lastSequence: 0,
      smr: { message: {} },
    },
    json: () => JSON.parse('{}'),
    string: () => 'b',
  });
  t.is(`${openStored(stored(7), seal).message?.body}`, 'b');
  t.deepEqual(openStored(stored(8), seal), { message: undefined, bytes: 1 });
  t.is(openStored(stored(7), new Seal(clusterKey, 'another stream')).message, undefined);
  header.set('Hf-From', '1');
  t.is(openStored(stored(7), seal).message, undefined);
});

test('[C13] the body of a stored message is decoded once', async (t) => {
  const { stream } = await fresh(t);
  const body = 'decoded once'.repeat(100);
  const sent = Buffer.from(body).toString('base64');
  await stream.append(body);
  const { atob } = globalThis;
  let decoded = 0;
  t.teardown(() => {
    globalThis.atob = atob;
  });
  globalThis.atob = (text) => {
    if (text === sent) decoded += 1; // other tests run meanwhile
    return atob(text);
  };
  t.is((await stream.look(1))?.bytes, body.length);
  t.is(decoded, 1);
  for await (const message of stream.read(1, 1)) t.is(`${message.body}`, body);
  t.is(decoded, 2);
});

test('[C13] who follows gets each message once, in order, however fast they come', async (t) => {
  const { stream } = await fresh(t);
  for (let i = 0; i < 100; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  const got: number[] = [];
  // No look without a hint in the time of a test: a hint that was not heard would show.
  const follower = stream.follow(1, ({ seq }) => void got.push(seq), { pollMs: 3_600_000 });
  t.teardown(() => follower.end());
  await Promise.all(Array.from({ length: 400 }, (_, i) => stream.append('x', { expectedLast: 100 + i })));
  await until('all have come', () => got.length >= 500);
  t.deepEqual(
    got,
    Array.from({ length: 500 }, (_, i) => i + 1),
  );
  const began = performance.now();
  await stream.append('one more');
  await until('it has come', () => got.length === 501, 1);
  t.log(`a message was handed on ${Math.round(performance.now() - began)} ms after it was sent`);
  await follower.end();
  await stream.append('nobody hears it');
  t.is(got.length, 501);
});

test('[C13] a message whose handler throws is handed on again before the next', async (t) => {
  const { stream } = await fresh(t);
  for (let i = 0; i < 3; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  const got: number[] = [];
  const follower = stream.follow(1, async ({ seq }) => {
    got.push(seq);
    if (got.length === 2) throw new Error('on purpose');
  });
  t.teardown(() => follower.end());
  await until('all have come', () => got.length === 4);
  t.deepEqual(got, [1, 2, 2, 3]);
});

test('[C13] the first message of a subject is read, whatever strangers wrote before it and behind it', async (t) => {
  const { stream, link } = await fresh(t, { subjects: ['hf.tests.first.*'] });
  const forge = (subject: string) => link.jetstream().publish(subject, 'forged');
  await stream.append('elsewhere', { subject: 'hf.tests.first.b' });
  await forge('hf.tests.first.a');
  for (const text of ['1', '2']) await stream.append(text, { subject: 'hf.tests.first.a' });
  await forge('hf.tests.first.a');
  t.is(`${(await stream.firstOf('hf.tests.first.a'))?.body}`, '1');
  t.is(await stream.firstOf('hf.tests.first.c'), undefined);
  for (let i = 0; i < 5; i += 1) await forge('hf.tests.first.d');
  await stream.append('3', { subject: 'hf.tests.first.d' });
  t.is(await stream.firstOf('hf.tests.first.d'), undefined, 'it looks at a few');
});

test('[C13] the newest message of a subject is read, and hints are heard at once', async (t) => {
  const subjects = ['hf.tests.last.*'];
  const { stream, link } = await fresh(t, { subjects, storage: 'memory', discard: 'old' });
  const heard: string[] = [];
  stream.hear(({ body, subject }) => void heard.push(`${subject} ${body}`));
  await link.connected().flush();
  for (const text of ['1', '2']) await stream.append(text, { subject: 'hf.tests.last.a' });
  await stream.append('3', { subject: 'hf.tests.last.b' });
  t.is(`${(await stream.lastOf('hf.tests.last.a'))?.message?.body}`, '2');
  t.is(await stream.lastOf('hf.tests.last.c'), undefined);
  t.deepEqual(heard, ['hf.tests.last.a 1', 'hf.tests.last.a 2', 'hf.tests.last.b 3']);
  t.is(link.forged, 0);
});
