import test, { type ExecutionContext } from 'ava';
import type { Takeover } from '../../../../src/machines/cluster/singleton.ts';
import type { LastHolder } from '../../../../src/plugins/cluster/leases/message.ts';
import { placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import { openLink } from '../../../support/cluster.ts';
import { inheritedBy, TENURES, taking } from '../../../support/inherited.ts';
import { MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';

test('[C13] a takeover that was cut off hands on nothing, and a whole one nothing of what its host had before', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const barnSeq = await barn.mirror(3);
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  await cellar.mirror(2, { actor: 'test.door/old' });
  await cellar.mirror(1, taking(7));
  const adopting = (part: number) => ({
    actor: `test.door/${part}`,
    event: {
      ...{ type: 'adopt', host: 'barn', incarnation: '1', seq: barnSeq, hash: '' },
      ...{ part, parts: 2, state: {} },
    },
  });
  await cellar.mirror(1, adopting(0));
  const before = [{ host: 'barn', run: 'b', number: 5 }];
  const last: LastHolder = { host: 'cellar', run: 'r', number: 7, before };
  const attic = await inheritedBy(link, 'attic', new MirroredHost(t, link, { host: 'attic' }), last);
  t.is(attic.source, `barn:${barnSeq}`);
  t.is((await inheritedBy(link, 'cellar', cellar, last)).source, `barn:${barnSeq}`);
  const shed = new MirroredHost(t, link, { host: 'shed' });
  await shed.mirror(2, { actor: 'test.door/old' });
  await shed.mirror(1, taking(10));
  await shed.mirror(1, adopting(0));
  const shedSeq = await shed.mirror(1, adopting(1));
  const taken = { host: 'shed', run: 's', number: 10, before: [last, ...before] };
  const whole = await inheritedBy(link, 'attic', new MirroredHost(t, link, { host: 'attic' }), taken, 'i:11');
  t.is(whole.source, `shed:${shedSeq}`);
  t.deepEqual(whole.actors, ['test.door/0', 'test.door/1']);
});

test('[C13] a host that lost the lease before its work began leaves nothing: its successor goes on from the one before', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const barnSeq = await barn.mirror(3);
  // The cellar held it long ago, and again, but not until its work began.
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  await cellar.mirror(1, taking(3));
  await cellar.mirror(1);
  await cellar.mirror(1, taking(7));
  const before: LastHolder['before'] = [
    { host: 'barn', run: 'b', number: 5 },
    { host: 'cellar', run: 'c', number: 3 },
  ];
  const last: LastHolder = { host: 'cellar', run: 'r', number: 7, before };

  const inherited = async (host: string, log: MirroredHost, from = last) =>
    (await inheritedBy(link, host, log, from)).source;
  const attic = new MirroredHost(t, link, { host: 'attic' });
  t.is(await inherited('attic', attic), `barn:${barnSeq}`);
  t.is(await inherited('cellar', cellar), `barn:${barnSeq}`, 'also when it is its own successor');
  t.is(
    await inherited('barn', barn),
    'its own log',
    'whose own log holds what was done last, needs no other',
  );
});

test('[C13] a successor knows of the takeovers that the host before had told nobody of yet, and adds its own', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  const takeover = (host: string, number: number) => ({
    ...{ host, seq: 80, hash: 'a', by: 'barn', token: `i:${number}` },
  });
  const [noted, untold] = [takeover('cellar', 3), takeover('loft', 5)];
  const tookOver = (takeovers: readonly Takeover[]) => ({ type: 'TOOK_OVER', at: 1, by: 1, takeovers });
  await barn.mirror(3, taking(5));
  await barn.mirror(1, { actor: TENURES, event: JSON.parse(JSON.stringify(tookOver([noted, untold]))) });
  const seq = await barn.mirror(3);
  const note = { type: 'TAKEOVER_NOTED', at: 2, host: 'cellar', token: 'i:3' };
  const last = await barn.mirror(1, { actor: TENURES, event: note });
  t.is(last, seq + 1);
  const attic = new MirroredHost(t, link, { host: 'attic' });
  const from = await inheritedBy(link, 'attic', attic, { host: 'barn', run: 'b', number: 5 });
  t.like(from.takeovers, [untold, { host: 'barn', seq: last, by: 'attic', token: 'i:9' }]);
  t.is(from.takeovers.length, 2);
});

test('[C13] with one record by its actors the work of a host has begun', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  await barn.mirror(3);
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  await cellar.mirror(1, taking(7));
  const cellarSeq = await cellar.mirror(1);
  const before = [{ host: 'barn', run: 'b', number: 5 }];
  const last: LastHolder = { host: 'cellar', run: 'r', number: 7, before };
  const inherited = async (host: string, log: MirroredHost, from = last) =>
    (await inheritedBy(link, host, log, from)).source;
  const attic = new MirroredHost(t, link, { host: 'attic' });
  t.is(await inherited('cellar', cellar), 'its own log');
  t.is(await inherited('attic', attic), `cellar:${cellarSeq}`);
  // It began by an earlier token and went on by a later one of the same host.
  const again = { ...last, number: 8, before: [{ host: 'cellar', run: 'r', number: 7 }, ...before] };
  t.is(await inherited('attic', attic, again), `cellar:${cellarSeq}`);
});

const FENCE_7 = { singleton: 'doors', token: 'i:7', by: 'cellar' };
/** The barn began its work, the cellar held the lease after it and did nothing. */
const FENCED_ONCE: LastHolder = {
  ...{ host: 'cellar', run: 'c', number: 7 },
  before: [{ host: 'barn', run: 'b', number: 5 }],
};

/** The barn does its work, is fenced by the cellar, and learns of it when it has recorded more. */
async function fencedBarn(t: ExecutionContext) {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const counted = await barn.mirror(6);
  const knocks = [...barn.states.values()].map(({ ref, context }) => [ref, context]);
  await placeFence(streamsOf(link), 'barn', FENCE_7);
  await barn.mirror(3);
  t.like(barn.told.orphans[0], { after: counted, records: 3 });
  return { link, barn, counted, doors: knocks.filter(([ref]) => ref !== TENURES).sort() };
}

test('[C13] the first newer fence ends what counts of a host, although later fences and saved states stand behind it', async (t) => {
  const { link, barn, counted, doors } = await fencedBarn(t);
  await barn.stop(); // it saves its states, those that do not count among them
  const attic = new MirroredHost(t, link, { host: 'attic' });
  await attic.mirror(1, { actor: 'test.other/1' });
  const from = await inheritedBy(link, 'attic', attic, FENCED_ONCE);
  t.is(from.source, `barn:${counted}`);
  t.deepEqual(from.knocks, doors);
  const garden = new MirroredHost(t, link, { host: 'garden' });
  const last = { host: 'attic', run: 'a', number: 9, before: [FENCED_ONCE, ...(FENCED_ONCE.before ?? [])] };
  const { takeovers: _, reads: _reads, ...later } = await inheritedBy(link, 'garden', garden, last, 'i:11');
  t.like(from, later, 'and so for each that comes later');
});

test('[C13] what a host records counts again when the work has begun there by a newer token than the fence', async (t) => {
  const { link, barn } = await fencedBarn(t);
  await barn.mirror(1, taking(8));
  const adopting = {
    type: 'adopt',
    host: 'cellar',
    incarnation: '1',
    seq: 1,
    hash: '',
    part: 0,
    parts: 1,
    state: {},
  };
  await barn.mirror(1, { actor: 'test.door/new', event: adopting });
  const seq = await barn.mirror(1, { actor: 'test.door/new' });
  // A host that was stopped for long comes too late with its fence.
  await placeFence(streamsOf(link), 'barn', FENCE_7);
  const newest = await barn.mirror(1, { actor: 'test.door/new' });
  t.is(newest, seq + 1);
  const attic = new MirroredHost(t, link, { host: 'attic' });
  const last = { host: 'garden', run: 'g', number: 9, before: [{ host: 'barn', run: 'b', number: 8 }] };
  const from = await inheritedBy(link, 'attic', attic, last, 'i:10');
  t.deepEqual([from.source, from.actors], [`barn:${newest}`, ['test.door/new']]);
});

test('[C13] a host that holds a singleton again does not go on from what it recorded behind a fence', async (t) => {
  const { link, barn, counted, doors } = await fencedBarn(t);
  const from = await inheritedBy(link, 'barn', barn, FENCED_ONCE);
  t.is(from.source, `barn:${counted}`);
  t.deepEqual(from.knocks, doors);
});

test('[C13] a host that was fenced and learns of it only when it holds the singleton again does not, either', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const counted = await barn.mirror(6);
  await placeFence(streamsOf(link), 'barn', FENCE_7);
  await barn.append(3);
  const from = await inheritedBy(link, 'barn', barn, FENCED_ONCE);
  t.is(from.source, `barn:${counted}`);
});

test('[C13] where the ledger knows no holder, the newest tenure on the streams of all hosts is taken over, with a fence', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const attic = new MirroredHost(t, link, { host: 'attic' });
  await attic.mirror(1, { actor: 'test.other/1' });
  t.is((await inheritedBy(link, 'attic', attic)).source, 'its own log', 'nobody ever did');
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  await cellar.mirror(1, taking(5));
  await cellar.mirror(3);
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(7));
  const barnSeq = await barn.mirror(3);
  await cellar.mirror(1, taking(8)); // and it never began
  t.is((await inheritedBy(link, 'attic', attic)).source, `barn:${barnSeq}`);
  await barn.mirror(1);
  t.like(barn.told.fences, [{ token: 'i:9', by: 'attic', atSeq: barnSeq }]);
  t.is((await inheritedBy(link, 'barn', barn)).source, `barn:${barnSeq}`, 'also by the one whose it is');
  // The new ledger knows who held the lease since, but not before.
  const last: LastHolder = { host: 'garden', run: 'g', number: 12 };
  t.is((await inheritedBy(link, 'cellar', cellar, last, 'i:13')).source, `barn:${barnSeq}`);
});

test('[C13] an outdated host declines, and another takes over from the same record: also a newer one', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const takingWith = (number: number, version: number) => {
    const software = { release: `0.${version}.0`, machines: { 'test.door': version } };
    return { actor: TENURES, event: { type: 'TAKING', token: `i:${number}`, software } };
  };
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, takingWith(5, 2));
  const barnSeq = await barn.mirror(3);
  const barnLast: LastHolder = { host: 'barn', run: 'b', number: 5 };
  const attic = new MirroredHost(t, link, { host: 'attic' });
  await attic.mirror(1, takingWith(6, 1));
  t.is(
    (await inheritedBy(link, 'attic', attic, barnLast, 'i:6', 1)).source,
    'The work of doors was done last by release 0.2.0, with version 2 of the machine of test.door; this host has release 0.1.0, with version 1.',
  );
  const last: LastHolder = { host: 'attic', run: 'a', number: 6, before: [barnLast] };
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  t.is((await inheritedBy(link, 'cellar', cellar, last, 'i:7', 2)).source, `barn:${barnSeq}`, 'the same one');
  const garden = new MirroredHost(t, link, { host: 'garden' });
  t.is((await inheritedBy(link, 'garden', garden, last, 'i:8', 3)).source, `barn:${barnSeq}`, 'a newer one');
  const { source } = await inheritedBy(
    link,
    'shed',
    new MirroredHost(t, link, { host: 'shed' }),
    last,
    'i:10',
    1,
  );
  t.regex(source, /release 0\.2\.0/, 'what the attic could not begin did not make it older');
  const loft = new MirroredHost(t, link, { host: 'loft' });
  await loft.mirror(1, takingWith(20, 2));
  await loft.mirror(3);
  const begunWith = { release: '0.2.0', machines: { 'test.door': 2 } };
  const to = { value: 'holding', context: { token: 'i:20', begunBy: 'i:20', begunWith } };
  await loft.mirror(1, { actor: TENURES, event: { type: 'BEGUN' }, to });
  await loft.stop(); // only its saved states tell it from here on
  const loftLast: LastHolder = { host: 'loft', run: 'l', number: 20 };
  t.regex((await inheritedBy(link, 'attic', attic, loftLast, 'i:21', 1)).source, /release 0\.2\.0/);
});
