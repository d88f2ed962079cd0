import test from 'ava';
import type { Takeover } from '../../../src/machines/cluster/singleton.ts';
import type { LastHolder } from '../../../src/plugins/cluster/leases/message.ts';
import { openLink } from '../../support/cluster.ts';
import { inheritedBy, taking } from '../../support/inherited.ts';
import { MirroredHost } from '../../support/mirrored-host.ts';
import { startNats } from '../../support/nats.ts';

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
