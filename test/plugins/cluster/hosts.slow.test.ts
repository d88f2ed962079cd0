import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { numberOf } from '../../../src/plugins/cluster/leases/ledger.ts';
import { fakeDisk } from '../../support/disk.ts';
import { Hosts } from '../../support/hosts/hosts.ts';
import { startNats } from '../../support/nats.ts';
import { tempDir } from '../../support/temp.ts';
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

test('[C13] a host whose disk is full gives its work to another one and says so, and takes it over again when there is room', async (t) => {
  t.timeout(400_000);
  const nats = await startNats(t);
  const disk = fakeDisk(tempDir(t));
  const envOf = (host: string) => (host === 'one' ? disk.env : {});
  const hosts = new Hosts(t, { servers: () => nats.url(), envOf });
  await hosts.start('one');
  await hosts.stroke(['one']);
  await hosts.start('two');
  disk.fill();
  await hosts.stroke(['two']);
  const status = await hosts.command('one', 'cluster', 'status');
  t.is(status.code, 1);
  t.regex(status.out, /leaves its work to others, and takes nothing over: its log takes nothing: .*full/);
  disk.free();
  await hosts.end('two', 'SIGTERM');
  await hosts.stroke(['one']);
  const tokens = hosts.journal().map(({ token }) => numberOf(token));
  t.deepEqual(
    tokens,
    tokens.toSorted((a, b) => a - b),
  );
});
