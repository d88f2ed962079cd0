import test from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { portableHeader } from '../../../../src/core/kernel/log/portable/export.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf } from '../../../../src/plugins/cluster/mirror/incarnations.ts';
import {
  inheritanceOf,
  type PlacedFence,
  placeFence,
} from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import { exportPartOf, type OrphanedBranch } from '../../../../src/plugins/cluster/mirror/orphans.ts';
import { EXPECTED_LAST } from '../../../../src/plugins/cluster/nats/seal.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink } from '../../../support/cluster.ts';
import { CLUSTER, MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import { until } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const nats = natsOfFile(test);

/** Records of a log that may be under way to the stream at once: more is only more work. */
const UNDER_WAY = 400;

/** Compares what a host's stream holds with the host's own log. */
async function sameAsLocal(host: MirroredHost, name: string, link: Parameters<typeof streamsOf>[0]) {
  const mirrored = await openHostLog(streamsOf(link), name);
  const local = new SqliteReader(host.dataDir);
  try {
    const rows = (log: SqliteReader) => [...log.pages()].flat();
    return {
      incarnation: mirrored.incarnation,
      isSame: JSON.stringify(rows(mirrored.reader)) === JSON.stringify(rows(local)),
      records: mirrored.end.seq,
    };
  } finally {
    mirrored.reader.close();
    local.close();
  }
}

test('[C13] what the local log holds is on the stream in order, and whoever waits for a record hears of it at once', async (t) => {
  const link = await openLink(t, nats().url());
  const host = new MirroredHost(t, link, { host: 'plain' });
  await host.mirror(1);
  const began = performance.now();
  const seq = await host.mirror(5_000);
  t.is(seq, 5_001);
  t.log(`5,000 records in ${Math.round(performance.now() - began)} ms`);
  t.deepEqual(await sameAsLocal(host, 'plain', link), { incarnation: 1, isSame: true, records: 5_001 });
  t.deepEqual(host.outbox.lag(), { records: 0, bytes: 0, ms: 0 });
  await host.stop();
  const again = new MirroredHost(t, link, { host: 'plain', dataDir: host.dataDir });
  await again.mirror(3);
  t.deepEqual(await sameAsLocal(again, 'plain', link), { incarnation: 1, isSame: true, records: 5_004 });
  t.deepEqual(again.told.incarnations, []);
});

test('[C13] a record that nobody waits for goes to the stream by itself, also where a timer fires a little early', async (t) => {
  const link = await openLink(t, nats().url());
  const early: Clock = {
    ...systemClock,
    after: (ms, callback) => systemClock.after(Math.max(0, ms - 5), callback),
  };
  const host = new MirroredHost(t, link, { host: 'early', clock: early });
  const seq = await host.append(1);
  await until('it is on the stream', () => host.outbox.position.seq === seq);
  t.is(host.outbox.lag().records, 0);
});

test('[C13] records that stand behind the states of actors wait for others no second time', async (t) => {
  const link = await openLink(t, nats().url());
  const clock = new VirtualClock();
  const host = new MirroredHost(t, link, {
    ...{ host: 'behind', clock },
    states: () => ({ seq: 2_005, states: [] }),
  });
  await host.mirror(2_000); // now states are due
  const seq = await host.append(10);
  await clock.advance(50); // no more time passes
  await until('all records are on the stream', () => host.outbox.position.seq === seq);
  t.pass();
});

test('[C13] a new holder knows every actor as of its fence, and what the old one recorded after it is an orphaned branch', async (t) => {
  const link = await openLink(t, nats().url());
  const old = new MirroredHost(t, link, { host: 'old' });
  await old.mirror(2_500);
  await until('states are on the stream', async () => {
    await old.mirror(1);
    return old.log.lastSeq() > 2_510;
  });
  const expected = JSON.stringify([...old.states.values()]);
  const at = old.log.lastSeq();
  const fence = await placeFence(streamsOf(link), 'old', { singleton: 'doors', token: '1:7', by: 'new' });
  const began = performance.now();
  const inheritance = await inheritanceOf(streamsOf(link), fence, ['test.door']);
  t.log(`inherited in ${Math.round(performance.now() - began)} ms`);
  const { stream: name } = namesOf(CLUSTER, 'old', fence.incarnation);
  const stream = await LinearStream.existing(link, name, streamsOf(link));
  const { headers } = (await stream?.get(fence.streamSeq)) ?? {};
  t.is(headers?.['Nats-Expected-Stream'], name);
  t.is(headers?.[EXPECTED_LAST], undefined, 'whatever the old holder sends meanwhile');
  t.is(inheritance.seq, at);
  t.is(JSON.stringify(inheritance.states), expected);
  await old.mirror(5);
  t.deepEqual(
    old.told.fences.map(({ singleton, token, by, atSeq }) => ({ singleton, token, by, atSeq })),
    [{ singleton: 'doors', token: '1:7', by: 'new', atSeq: at }],
  );
  t.deepEqual(old.outbox.orphans(), old.told.orphans);
  t.like(old.told.orphans[0], { after: at, records: 5, to: at + 5, by: 'new' });
  const local = new SqliteReader(old.dataDir);
  t.teardown(() => local.close());
  const [branch] = old.told.orphans;
  const { range, actors } = portableHeader(local, exportPartOf(local, branch as OrphanedBranch), 0);
  t.deepEqual(range, { from: at + 1, to: at + 5 });
  t.deepEqual(actors?.toSorted(), ['test.door/0', 'test.door/1', 'test.door/2']);
  t.deepEqual(await inheritanceOf(streamsOf(link), fence, ['test.door']), inheritance);
  t.true((await sameAsLocal(old, 'old', link)).isSame);
});

test('[C13] fences that fall among records under way change neither the log on the stream nor what counts before them', async (t) => {
  const link = await openLink(t, nats().url());
  // What the old holder was told to be on the stream, when it was told.
  const promised: { readonly seq: number; readonly fences: number }[] = [];
  const old = new MirroredHost(t, link, { host: 'stormy', largest: 4_000 });
  await old.mirror(1);
  let isOver = false;
  const appending = (async () => {
    while (!isOver) {
      const seq = await old.append(60);
      void old.outbox.mirrored(seq).then(() => promised.push({ seq, fences: old.told.fences.length }));
      if (seq > UNDER_WAY) await old.outbox.mirrored(seq - UNDER_WAY);
    }
  })();
  const placed: PlacedFence[] = [];
  for (let index = 0; index < 12; index += 1) {
    const seq = old.log.lastSeq();
    await until('it goes on', () => old.log.lastSeq() > seq + 100);
    const fence = { singleton: 'doors', token: `1:${index + 1}`, by: 'new' };
    placed.push(await placeFence(streamsOf(link), 'stormy', fence));
    // It holds the singleton again: what it records from here on counts.
    await until('the fence was found', () => old.told.fences.length > index);
    const event = { type: 'TAKING', token: fence.token };
    const again = await old.append(1, { actor: 'cluster.singleton/doors', event });
    await until('a record by it is on the stream', () => old.outbox.position.seq > again + 60);
  }
  isOver = true;
  await appending;
  await old.mirror(1);
  t.log(`${old.log.lastSeq()} records`);
  t.true((await sameAsLocal(old, 'stormy', link)).isSame);
  t.deepEqual(
    old.told.fences.map(({ token }) => token),
    placed.map(({ token }) => token),
  );
  for (const [index, fence] of placed.entries()) {
    const { seq } = await inheritanceOf(streamsOf(link), fence, ['test.door']);
    t.is(old.told.fences[index]?.atSeq, seq);
    // Whoever waited for a record before the fence was found went on: the next holder knows of it.
    const before = promised.filter(({ fences }) => fences <= index);
    t.true(
      before.every((one) => one.seq <= seq),
      `fence ${index} at ${seq}`,
    );
  }
});
