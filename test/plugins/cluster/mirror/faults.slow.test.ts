import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { nextBatch } from '../../../../src/plugins/cluster/mirror/batch.ts';
import { openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf } from '../../../../src/plugins/cluster/mirror/incarnations.ts';
import { placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import { headersOf } from '../../../../src/plugins/cluster/mirror/message.ts';
import { newestStates } from '../../../../src/plugins/cluster/mirror/newest-states.ts';
import type { NatsLink } from '../../../../src/plugins/cluster/nats/link.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink, silent } from '../../../support/cluster.ts';
import { CLUSTER, type HostWish, MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { tempDir } from '../../../support/temp.ts';
import { read, until } from '../../../support/until.ts';

/** A server of its own, and a host whose log goes there. */
async function setUp(t: ExecutionContext, wish: HostWish = {}) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  return { nats, link, host: new MirroredHost(t, link, wish) };
}

/** As a takeover does, it tries again where the connection was closed meanwhile. */
async function tried<T>(attempt: () => Promise<T>): Promise<T> {
  const made = await read(
    'an attempt over one connection',
    () => attempt().then((value) => ({ value }), unlessUnavailable),
    ({ value }) => value !== undefined,
  );
  return made.value as T;
}

function unlessUnavailable(error: unknown): { readonly value?: undefined } {
  if (isCoded(error, 'HF_CLUSTER_STREAM_UNAVAILABLE') || isCoded(error, 'HF_CLUSTER_UNREACHABLE')) return {};
  throw error;
}

/** Whether the newest stream of a host holds its local log, record by record. */
async function checkWhole(t: ExecutionContext, link: NatsLink, host: MirroredHost, incarnation: number) {
  const mirrored = await tried(() => openHostLog(streamsOf(link), 'one'));
  const local = new SqliteReader(host.dataDir);
  t.deepEqual([...mirrored.reader.pages()].flat(), [...local.pages()].flat());
  t.is(mirrored.incarnation, incarnation);
  t.true(mirrored.isFilled);
  mirrored.reader.close();
  local.close();
}

const streamName = (incarnation: number) => namesOf(CLUSTER, 'one', incarnation).stream;

test('[C13] while NATS is gone the log goes on, and when it is back nothing is missing and nothing stands twice', async (t) => {
  const { nats, link, host } = await setUp(t);
  await host.mirror(300);
  const appending = host.append(3_000);
  await nats.kill(0);
  await appending;
  await host.append(1_000);
  const { records, bytes, ms } = host.outbox.lag();
  t.true(records >= 1_000 && bytes > 0 && ms > 0, JSON.stringify(host.outbox.lag()));
  await nats.restart(0);
  await host.outbox.mirrored(4_300);
  await checkWhole(t, link, host, 1);
  t.deepEqual(host.told.incarnations, []);
});

test('[C13] a stream that was deleted is filled again under the next name, and told', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(500);
  await (await link.manager()).streams.delete(streamName(1));
  await host.mirror(10);
  await checkWhole(t, link, host, 2);
  t.is(host.told.incarnations.length, 1);
  t.like(host.told.incarnations[0], { incarnation: 2, reason: 'it was gone', from: 1 });
});

test('[C13] a stream that is filled again has the states of actors near its end, so that a takeover does not read all records', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(6_000);
  const statesOn = async (incarnation: number) => {
    const { stream: name, states } = namesOf(CLUSTER, 'one', incarnation);
    const stream = await LinearStream.existing(link, name, streamsOf(link));
    return stream && (await newestStates(stream, states, (await stream.last()).seq + 1));
  };
  await until('states are on the first stream', () => statesOn(1));
  await (await link.manager()).streams.delete(streamName(1));
  await host.mirror(10);
  t.is(host.outbox.position.incarnation, 2);
  await until('states are on the second stream', () => statesOn(2));
  t.true(((await statesOn(2))?.to ?? 0) > 4_000);
});

/** What is looked at every few seconds is looked at all the time. */
const quick: Clock = {
  ...systemClock,
  after: (ms, callback) => systemClock.after(Math.min(ms, 50), callback),
};

test('[C13] a stream that was deleted is noticed while nothing is written', async (t) => {
  const { link, host } = await setUp(t, { clock: quick });
  await host.mirror(100);
  await (await link.manager()).streams.delete(streamName(1));
  await until('it is filled again', () => host.outbox.position.incarnation === 2);
  await host.outbox.mirrored(100);
  await checkWhole(t, link, host, 2);
});

test('[C13] messages that a stranger purged from a stream are noticed while nothing is written, however many are left', async (t) => {
  const { link, host } = await setUp(t, { clock: quick });
  await host.mirror(100);
  await (await link.manager()).streams.purge(streamName(1));
  await until('it is filled again', () => host.outbox.position.incarnation === 2);
  await host.mirror(100);
  await (await link.manager()).streams.purge(streamName(2), { seq: 2 });
  await until('it is filled again', () => host.outbox.position.incarnation === 3);
  await host.outbox.mirrored(200);
  await checkWhole(t, link, host, 3);
  t.regex(host.told.incarnations.at(-1)?.reason ?? '', /^its messages before 2 were removed$/);
});

/** Nothing is looked at that is looked at every few seconds. */
const blind: Clock = {
  ...systemClock,
  after: (ms, callback) => (ms > 3_000 ? () => {} : systemClock.after(ms, callback)),
};

test('[C13] an acknowledgement that somebody else gives counts for nothing: a record is waited for until it is on the stream', async (t) => {
  const { nats, link, host } = await setUp(t, { clock: blind });
  await host.mirror(20);
  const stranger = await connect({ servers: nats.urls() });
  t.teardown(() => stranger.close());
  let given = 0;
  stranger.subscribe(namesOf(CLUSTER, 'one', 1).records, {
    callback: (_, message) => {
      given += 1;
      const seq = Number(message.headers?.get('Nats-Expected-Last-Sequence')) + 1;
      message.respond(JSON.stringify({ stream: streamName(1), seq }));
    },
  });
  await stranger.flush();
  // Nobody stores what is sent now, and the stranger says that it is stored.
  await (await link.manager()).streams.delete(streamName(1));
  await host.mirror(10);
  t.true(given > 0);
  await checkWhole(t, link, host, 2);
});

test('[C13] a server that was set back has lost acknowledged records: they are sent again under the next name', async (t) => {
  const { nats, link, host } = await setUp(t);
  await host.mirror(400);
  await nats.kill(0);
  const backup = tempDir(t);
  cpSync(nats.storeDir(), backup, { recursive: true });
  await nats.restart(0);
  await host.mirror(400);
  await nats.kill(0);
  rmSync(nats.storeDir(), { recursive: true });
  cpSync(backup, nats.storeDir(), { recursive: true });
  await nats.restart(0);
  await host.mirror(1);
  await checkWhole(t, link, host, 2);
  t.regex(host.told.incarnations[0]?.reason ?? '', /^it lost what stood behind message \d+$/);
  // The next host that reads the old stream sees that it was left.
  await host.stop();
  writeFileSync(join(host.dataDir, 'cluster-position.json'), '{}');
  const again = new MirroredHost(t, link, { dataDir: host.dataDir });
  await again.mirror(1);
  await checkWhole(t, link, again, 2);
});

test('[C13] a kill between an append and the note of it loses nothing and repeats nothing', async (t) => {
  const { link, host } = await setUp(t);
  const file = join(host.dataDir, 'cluster-position.json');
  await host.mirror(200);
  await until(
    'the position is noted',
    () => existsSync(file) && readFileSync(file, 'utf8').includes('"seq":200'),
  );
  const early = readFileSync(file);
  await host.mirror(700);
  await host.stop();
  for (const position of [early, '{}', 'no JSON']) {
    writeFileSync(file, position);
    const again = new MirroredHost(t, link, { dataDir: host.dataDir });
    await again.mirror(100);
    await checkWhole(t, link, again, 1);
    await again.stop();
    t.deepEqual(again.told.incarnations, []);
  }
});

/** Its states alone are more than the small stream of a test holds. */
const large = (text: string, chars: number) => ({
  to: { value: 'closed', context: { note: text.repeat(chars) } },
});

test('[C13] a full stream that cannot be trimmed loses nothing: it is told, and when there is room the records go on', async (t) => {
  const { link, host } = await setUp(t, { limits: { maxBytes: 1024 * 1024, replicas: 1 } });
  await host.mirror(100);
  await host.append(3, large('a', 300_000));
  await host.append(5);
  await until('it is told', () =>
    host.told.troubles.some((text) => text?.startsWith('HF_CLUSTER_STREAM_FULL')),
  );
  t.true(host.outbox.lag().records > 0);
  await (await link.manager()).streams.update(streamName(1), { max_bytes: 64 * 1024 * 1024 });
  await host.outbox.mirrored(108);
  t.is(host.told.troubles.at(-1), undefined);
  await checkWhole(t, link, host, 1);
});

test('[C13] a record larger than the server takes is sent in parts, also when a fence falls among them', async (t) => {
  const { link, host } = await setUp(t, { largest: 100_000 });
  await host.mirror(10);
  const knock = { event: { type: 'KNOCK', text: 'ü'.repeat(1_500_000) } };
  const mirrored = host.mirror(3, knock);
  await tried(() => placeFence(streamsOf(link), 'one', { singleton: 'doors', token: '1:1', by: 'two' }));
  await mirrored;
  await host.mirror(5);
  await checkWhole(t, link, host, 1);
  t.is(host.told.fences.length, 1);
});

test('[C13] a log that was pruned before it was sent begins a stream with the states before it', async (t) => {
  const { nats, link, host } = await setUp(t);
  await host.mirror(100);
  await nats.kill(0);
  await host.append(400);
  const rows = [...host.states].map(([ref, state]) => [ref, JSON.stringify(state)]);
  await host.append(50);
  await host.log.prune(500, rows);
  await nats.restart(0);
  await host.outbox.mirrored(550);
  t.like(host.told.incarnations[0], { incarnation: 2, from: 501 });
  t.regex(host.told.incarnations[0]?.reason ?? '', /pruned before record 101 was sent/);
  await checkWhole(t, link, host, 2);
  const { reader } = await openHostLog(streamsOf(link), 'one');
  t.deepEqual(reader.snapshots(500).sort(), rows.map(([, state]) => state ?? '').sort());
  reader.close();
});

test('[C13] a host that forgot how far it had come, and has pruned that, is no older copy: it begins the next stream', async (t) => {
  const { nats, link, host } = await setUp(t);
  await host.mirror(100);
  await nats.kill(0);
  await host.append(20);
  const rows = [...host.states].map(([ref, state]) => [ref, JSON.stringify(state)]);
  await host.append(30);
  await host.log.prune(120, rows);
  const copy = tempDir(t);
  cpSync(host.dataDir, copy, { recursive: true, filter: (file) => !file.includes('cluster-position') });
  await nats.restart(0);
  await host.stop();
  const again = new MirroredHost(t, link, { dataDir: copy });
  await again.mirror(10);
  t.is(again.outbox.position.incarnation, 2);
  t.is(again.outbox.trouble, undefined);
});

test('[C13] a log that was pruned at the very end of a message that it does not remember is no older copy: it goes on', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(100);
  await host.stop();
  const copy = tempDir(t);
  const position = 'cluster-position.json';
  cpSync(join(host.dataDir, position), join(copy, position));
  const later = new MirroredHost(t, link, { dataDir: host.dataDir });
  await later.mirror(1);
  const rows = [...host.states].map(([ref, state]) => [ref, JSON.stringify(state)]);
  await later.append(1);
  await later.log.prune(101, rows);
  await later.stop();
  cpSync(host.dataDir, copy, { recursive: true, filter: (file) => !file.includes('cluster-position') });
  const again = new MirroredHost(t, link, { dataDir: copy });
  await again.append(10);
  await until(
    'it says how it goes on',
    () => again.outbox.trouble !== undefined || again.outbox.position.seq === 112,
  );
  t.is(again.outbox.trouble, undefined);
  t.is(again.outbox.position.incarnation, 1);
});

test('[C13] a log that was set back neither goes on in the stream that is there nor hides it; another machine begins the next', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(100);
  await host.stop();
  const backup = tempDir(t);
  cpSync(host.dataDir, backup, { recursive: true });
  const later = new MirroredHost(t, link, { dataDir: host.dataDir });
  await later.mirror(50);
  await later.stop();
  const setBack = new MirroredHost(t, link, { dataDir: backup });
  await setBack.append(10, { event: { type: 'RING' } });
  await until('it says why it does not mirror', () => setBack.outbox.trouble !== undefined);
  t.like(setBack.outbox.trouble, { code: 'HF_CLUSTER_OLD_FOLDER', details: { host: 'one', to: 150 } });
  // Nor does one that does not know any more how far it had come.
  const forgetful = tempDir(t);
  cpSync(backup, forgetful, { recursive: true });
  await setBack.stop();
  rmSync(join(forgetful, 'cluster-position.json'));
  const lost = new MirroredHost(t, link, { dataDir: forgetful });
  await until('it says so', () => lost.outbox.trouble !== undefined);
  t.like(lost.outbox.trouble, { code: 'HF_CLUSTER_OLD_FOLDER', details: { host: 'one', to: 150 } });
  await lost.stop();
  const read = await openHostLog(streamsOf(link), 'one');
  t.like(read, { incarnation: 1, end: { seq: 150 } }, 'what was acknowledged is still what all read');
  read.reader.close();
  await setBack.stop();
  const other = new MirroredHost(t, link);
  await other.mirror(10);
  await checkWhole(t, link, other, 2);
  t.is(other.told.incarnations.length, 1);
});

test('[C13] a message that somebody removed from a stream is missed, whoever reads it', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(5);
  await host.stop();
  const { stream: name, records, states } = namesOf(CLUSTER, 'holed', 1);
  const { streams } = await link.manager();
  await streams.add({ name, subjects: [records, states], deny_delete: false });
  const whole = await LinearStream.existing(link, streamName(1), { clock: systemClock, logger: silent });
  const holed = await LinearStream.existing(link, name, { clock: systemClock, logger: silent });
  for await (const { body, headers } of whole?.read(1) ?? []) {
    const own = Object.entries(headers).filter(([header]) => /^Hf-(?!Mac)/.test(header));
    await holed?.append(body, { headers: Object.fromEntries(own) });
  }
  const read = await openHostLog(streamsOf(link), 'holed');
  t.is(read.end.seq, 5);
  read.reader.close();
  await streams.deleteMessage(name, 2);
  await t.throwsAsync(openHostLog(streamsOf(link), 'holed'), { code: 'HF_CLUSTER_STREAM_GAP' });
});

test('[C13] a copy of a message that the server took a second time changes nothing', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(60);
  const reader = new SqliteReader(host.dataDir);
  const batch = nextBatch(reader, { seq: 20, hash: '' }, 60, 900_000);
  reader.close();
  const name = streamName(1);
  const stream = await LinearStream.existing(link, name, { clock: systemClock, logger: silent });
  for (const message of batch?.messages ?? [])
    await stream?.append(message.body, { headers: headersOf(message) });
  await host.mirror(20);
  await checkWhole(t, link, host, 1);
  t.deepEqual(host.told.incarnations, []);
});
