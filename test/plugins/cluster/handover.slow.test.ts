import test from 'ava';
import type { Inheritance } from '../../../src/core/kernel/actors/adoption.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { Handover } from '../../../src/plugins/cluster/handover.ts';
import type { LastHolder } from '../../../src/plugins/cluster/leases/message.ts';
import type { NatsLink } from '../../../src/plugins/cluster/nats/link.ts';
import { openLink, silent } from '../../support/cluster.ts';
import { MirroredHost, streamsOf } from '../../support/mirrored-host.ts';
import { startNats } from '../../support/nats.ts';

const TENURES = 'cluster.singleton/doors';
const taking = (number: number) => ({ actor: TENURES, event: { type: 'TAKING', token: `i:${number}` } });

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
  const cellarSeq = await cellar.mirror(1, adopting(1));
  const whole = await inheritedBy(link, 'attic', new MirroredHost(t, link, { host: 'attic' }), last);
  t.is(whole.source, `cellar:${cellarSeq}`);
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

  const cellarSeq = await cellar.mirror(1);
  t.is(await inherited('attic', attic), `cellar:${cellarSeq}`, 'one record by its actors, and it has begun');
  t.is(await inherited('cellar', cellar), 'its own log');
  // It began by an earlier token and went on by a later one of the same host.
  const again = { ...last, number: 8, before: [{ host: 'cellar', run: 'r', number: 7 }, ...before] };
  t.is(await inherited('attic', attic, again), `cellar:${cellarSeq}`);
});

/** Whose states the work begins with, and of which actors. */
async function inheritedBy(link: NatsLink, host: string, { log, states }: MirroredHost, last: LastHolder) {
  let found = { source: 'it did not begin', actors: [] as string[] };
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    begin: async (_: unknown, inheritance?: Inheritance) => {
      found = {
        source: inheritance ? `${inheritance.host}:${inheritance.seq}` : 'its own log',
        actors: inheritance?.states.map(({ ref }) => ref).sort() ?? [],
      };
    },
    end: async () => {},
  };
  const actors = {
    get: () => undefined,
    knownStates: () => [...states.values()].filter(({ ref }) => ref.startsWith('test.door/')),
  };
  const handover = new Handover([doors], {
    ...{ services: { clock: systemClock, logger: silent, log, actors }, host },
    ...{ streams: streamsOf(link), holder: { hold: () => {}, release: () => {} } },
    ...{ leases: { release: async () => {} }, records: { singleton: () => 0 }, mirrored: async () => {} },
  });
  handover.gained({ singleton: 'doors', token: 'i:9', deadline: () => Infinity }, last);
  await handover.settled();
  return found;
}
