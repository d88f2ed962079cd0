import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { numberOf } from '../../../src/plugins/cluster/leases/ledger.ts';
import { Hosts } from '../../support/hosts/hosts.ts';
import { startNats } from '../../support/nats.ts';
import { read } from '../../support/until.ts';

const NAMES = ['one', 'two', 'three'] as const;

test('[C13] three hosts are one system: work moves on when its host dies, and nothing is done twice', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const hosts = new Hosts(t, { servers: () => nats.url() });
  await Promise.all(NAMES.map((name) => hosts.start(name)));
  const first = await hosts.stroke(NAMES);
  const others = NAMES.filter((name) => name !== first.host);

  // Whoever asks, the holder hears it.
  const [asking = ''] = others;
  await postControl(hosts.dataDir(asking), '/bucket/fill', { times: 3 }, new AbortController().signal);

  await hosts.end(first.host, 'SIGKILL');
  const second = await hosts.stroke(others);
  t.true(numberOf(second.token) > numberOf(first.token));

  // The old host comes back and follows.
  await hosts.start(first.host);
  const after = hosts.journal().length;
  await hosts.stroke([second.host], after);
  await hosts.stroke([second.host]);

  // A clean stop hands over at once.
  await hosts.end(second.host, 'SIGTERM');
  const third = await hosts.stroke(NAMES.filter((name) => name !== second.host));
  t.true(numberOf(third.token) > numberOf(second.token));

  const journal = hosts.journal();
  t.deepEqual(
    journal.map(({ token }) => numberOf(token)),
    journal.map(({ token }) => numberOf(token)).toSorted((a, b) => a - b),
  );
  // A stroke whose host died before it could say that it was done is tried again, by the same id.
  const ids = Map.groupBy(journal, ({ stroke }) => stroke);
  for (const [stroke, lines] of ids)
    t.is(new Set(lines.map(({ id }) => id)).size, 1, `stroke ${stroke}: ${JSON.stringify(lines)}`);
  t.is(new Set(journal.map(({ id }) => id)).size, ids.size);
  await read(
    'it goes on',
    () => hosts.journal().length,
    (length) => length > journal.length + 4,
  );
});
