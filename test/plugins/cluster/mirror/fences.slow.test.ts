import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf } from '../../../../src/plugins/cluster/mirror/incarnations.ts';
import { inheritanceOf, placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import type { NatsLink } from '../../../../src/plugins/cluster/nats/link.ts';
import { openLink } from '../../../support/cluster.ts';
import { CLUSTER, type HostWish, MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { until } from '../../../support/until.ts';

const FENCE = { singleton: 'doors', token: '1:7', by: 'two' };

async function setUp(t: ExecutionContext, wish: HostWish = {}) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  return { nats, link, host: new MirroredHost(t, link, wish) };
}

const deleteStream = async (link: NatsLink, incarnation: number) =>
  (await link.manager()).streams.delete(namesOf(CLUSTER, 'one', incarnation).stream);

/** That another host went on from a record. */
function takeoverAt({ dataDir }: MirroredHost, seq: number) {
  const local = new SqliteReader(dataDir);
  const hash = local.hashOf(seq) ?? '';
  local.close();
  return { ...FENCE, host: 'one', seq, hash };
}

/** The fences of the newest stream, and the actors as it begins with them, each as JSON. */
async function onStream(link: NatsLink) {
  const { incarnation, header, reader, fences } = await openHostLog(streamsOf(link), 'one');
  const { from } = header.range;
  const states = from === 1 ? [] : [...recover(reader, from - 1).states.values()];
  reader.close();
  return {
    ...{ incarnation, from, states: states.map((state) => JSON.stringify(state)).sort() },
    fences: fences.map(({ singleton, token, by, atSeq }) => ({ singleton, token, by, atSeq })),
  };
}

/** What a third host takes over. */
async function inherited(link: NatsLink) {
  const fence = await placeFence(streamsOf(link), 'one', { ...FENCE, token: '1:9', by: 'three' });
  const { seq, states } = await inheritanceOf(streamsOf(link), fence, ['test.door'], { isFirst: false });
  return { seq, states: states.map((state) => JSON.stringify(state)).sort() };
}

function statesAt(host: MirroredHost, seq: number): readonly string[] {
  const local = new SqliteReader(host.dataDir);
  const states = [...recover(local, seq).states.values()].map((state) => JSON.stringify(state)).sort();
  local.close();
  return states;
}

test('[C13] a fence of a stream that was lost stands at its place in the next, and the branch behind it stays one', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(100);
  await placeFence(streamsOf(link), 'one', FENCE);
  await host.mirror(50);
  const { orphans } = host.told;
  t.like(orphans[0], { after: 100 });
  await deleteStream(link, 1);
  await host.mirror(20);
  t.like(await onStream(link), { incarnation: 2, from: 1, fences: [{ ...FENCE, atSeq: 100 }] });
  await host.stop();
  await deleteStream(link, 2);
  const again = new MirroredHost(t, link, { dataDir: host.dataDir });
  await again.mirror(20);
  t.like(await onStream(link), { incarnation: 3, from: 1, fences: [{ ...FENCE, atSeq: 100 }] });
  // Nothing was fenced anew, and it is one branch.
  t.deepEqual([...host.told.fences.slice(1), ...again.told.fences], []);
  t.is(again.outbox.orphans().length, 1);
  t.deepEqual(await inherited(link), { seq: 100, states: statesAt(host, 100) });
});

test('[C13] a stream that is trimmed behind a fence begins with what counted before it, and has the fence again', async (t) => {
  const { link, host } = await setUp(t, { limits: { maxBytes: 4 * 1024 * 1024, replicas: 1 } });
  await host.mirror(100);
  await placeFence(streamsOf(link), 'one', FENCE);
  await host.mirror(1_000, { event: { type: 'KNOCK', text: 'k'.repeat(8_000) } });
  const { from, states, fences } = await onStream(link);
  t.true(from > 101);
  t.deepEqual(states, statesAt(host, 100));
  t.deepEqual(fences, [{ ...FENCE, atSeq: from - 1 }]);
  t.deepEqual((await inherited(link)).states, statesAt(host, 100));
});

test('[C13] a folder that was filled from the stream of a lost host keeps its fences in the next stream', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(100);
  await placeFence(streamsOf(link), 'one', FENCE);
  await host.mirror(50);
  await host.stop();
  // Another machine has another key, and the log alone.
  for (const file of readdirSync(host.dataDir))
    if (/^cluster-|^secrets$/.test(file)) rmSync(join(host.dataDir, file), { recursive: true });
  const adopted = new MirroredHost(t, link, { dataDir: host.dataDir });
  await until('it goes on in the next stream', () => adopted.outbox.position.incarnation === 2);
  await adopted.mirror(10);
  t.like(await onStream(link), { incarnation: 2, from: 1, fences: [{ ...FENCE, atSeq: 100 }] });
  t.like(adopted.told.orphans[0], { after: 100, by: 'two', records: 50 });
});

test('[C13] a fence by a host that came too late leaves no orphaned branch of work that began by a later token', async (t) => {
  let begunBy = '1:8';
  const { link, host } = await setUp(t, { begunBy: () => begunBy });
  await host.mirror(100);
  await placeFence(streamsOf(link), 'one', FENCE);
  await host.mirror(50);
  t.deepEqual([host.told.fences, host.told.orphans], [[], []]);
  begunBy = '1:6';
  await placeFence(streamsOf(link), 'one', { ...FENCE, token: '1:9' });
  await host.mirror(50);
  t.like(host.told.orphans, [{ after: 150, token: '1:9' }]);
});

test('[C13] a host that hears of a takeover without its fence notes one branch, and places the fence itself', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(100);
  const takeover = takeoverAt(host, 80);
  t.false(await host.outbox.takenOver({ ...takeover, seq: 101 }), 'it may come to that record yet');
  t.true(await host.outbox.takenOver({ ...takeover, hash: 'another' }), 'that record is gone');
  t.deepEqual(host.told.orphans, []);
  t.true(await host.outbox.takenOver(takeover));
  t.true(await host.outbox.takenOver(takeover));
  t.like(host.told.fences, [{ ...FENCE, atSeq: 80 }]);
  t.like(host.told.orphans, [{ after: 80, to: 100, records: 20 }]);
  await until('the fence stands', async () => (await onStream(link)).fences.length > 0);
  await host.mirror(20);
  t.like(await onStream(link), { incarnation: 1, fences: [{ ...FENCE, atSeq: 100 }] });
  await deleteStream(link, 1);
  await host.mirror(20);
  t.like(await onStream(link), { incarnation: 2, fences: [{ ...FENCE, atSeq: 80 }] });
  t.is(host.told.orphans.length, 1);
});

test('[C13] a host that hears late of a takeover notes what it recorded until it took the work over again', async (t) => {
  const { host } = await setUp(t, { begunBy: () => '1:9' });
  await host.mirror(100);
  t.true(await host.outbox.takenOver(takeoverAt(host, 80)));
  t.deepEqual(host.told.orphans, [], 'it went on from its own records');
  const adopting = { type: 'adopt', host: 'two', incarnation: '1', seq: 1, hash: '', part: 0, parts: 1 };
  await host.mirror(1, { event: { ...adopting, state: {} } });
  await host.mirror(20);
  t.true(await host.outbox.takenOver(takeoverAt(host, 80)));
  t.like(host.told.orphans, [{ after: 80, to: 100, records: 20 }]);
});
