import test, { type ExecutionContext } from 'ava';
import type { Takeover } from '../../../../src/machines/cluster/singleton.ts';
import type { LastHolder } from '../../../../src/plugins/cluster/leases/message.ts';
import { placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import { openLink } from '../../../support/cluster.ts';
import { inheritedBy, TENURES, taking } from '../../../support/inherited.ts';
import { MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { until } from '../../../support/until.ts';

test('[C13] whoever goes on with work tells each host that it passed over where what counts of it ends, also of its own log', async (t) => {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const barnSeq = await barn.mirror(3);
  const cellar = new MirroredHost(t, link, { host: 'cellar' });
  const cellarSeq = await cellar.mirror(1, taking(7));
  const before = [{ host: 'barn', run: 'b', number: 5 }];
  const last: LastHolder = { host: 'cellar', run: 'c', number: 7, before };
  const attic = new MirroredHost(t, link, { host: 'attic' });
  const ends = (host: string, seq: number, by: string, number: number) => ({
    ...{ host, seq, by, token: `i:${number}` },
  });
  const shown = (takeovers: readonly Takeover[]) => takeovers.map(({ hash: _, ...one }) => one);
  const first = await inheritedBy(link, 'attic', attic, last);
  t.deepEqual(shown(first.takeovers), [
    ends('cellar', cellarSeq, 'attic', 9),
    ends('barn', barnSeq, 'attic', 9),
  ]);
  const own = await inheritedBy(link, 'barn', barn, last, 'i:10');
  t.is(own.source, 'its own log');
  t.deepEqual(shown(own.takeovers), [ends('cellar', cellarSeq, 'barn', 10)]);
});

/** The barn did its work, said in the ledger where its states are, and was fenced by the attic, which did not begin: then it recorded more. */
async function fencedBarn(t: ExecutionContext) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const barn = new MirroredHost(t, link, { host: 'barn' });
  await barn.mirror(1, taking(5));
  const to = { value: 'holding', context: { token: 'i:5', begunBy: 'i:5' } };
  await barn.mirror(1, { actor: TENURES, event: { type: 'BEGUN' }, to });
  const counted = await barn.mirror(2_100);
  await until('states are on its stream', () => barn.outbox.position.states !== undefined);
  const { seq, states } = barn.outbox.position;
  await placeFence(streamsOf(link), 'barn', { singleton: 'doors', token: 'i:7', by: 'attic' });
  await barn.mirror(3);
  await barn.stop(); // it saves its states, those that do not count among them
  const mirror = { incarnation: '1', seq, states };
  return { link, counted, states, before: [{ host: 'barn', run: 'b', number: 5, mirror }] };
}

test('[C13] a takeover behind tenures that never began reads from the states that the ledger tells, up to the first fence', async (t) => {
  const { link, counted, states, before } = await fencedBarn(t);
  const attic = new MirroredHost(t, link, { host: 'attic' });
  const last: LastHolder = { host: 'attic', run: 'a', number: 7, before };
  const { source, reads } = await inheritedBy(link, 'attic', attic, last);
  t.is(source, `barn:${counted}`, 'the states behind its own fence do not count');
  t.deepEqual(reads, [states]);
});

test('[C13] where the ledger tells of no states that stand there, the whole stream is read, and says the same', async (t) => {
  const { link, counted, before } = await fencedBarn(t);
  const attic = new MirroredHost(t, link, { host: 'attic' });
  const wrong = before.map((one) => ({ ...one, mirror: { ...one.mirror, states: 1 } }));
  const last: LastHolder = { host: 'attic', run: 'a', number: 7, before: wrong };
  const { source, reads } = await inheritedBy(link, 'attic', attic, last);
  t.is(source, `barn:${counted}`);
  t.deepEqual(reads, [undefined]);
});
