import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { CheckContext } from '../../../../src/core/host/plugin/diagnosis.ts';
import { lookAt } from '../../../../src/plugins/cluster/operate/checks.ts';
import { clusterOptions } from '../../../../src/plugins/cluster/options.ts';
import { openLink } from '../../../support/cluster.ts';
import { clusterName, openHost } from '../../../support/message-hosts.ts';
import { CLUSTER, MirroredHost } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { tempDir } from '../../../support/temp.ts';
import { read } from '../../../support/until.ts';

/** Makes checks of a cluster, as `doctor` does. */
function checksOf(t: ExecutionContext, servers: string, name: string) {
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, Buffer.alloc(32, 'the key of a cluster of tests'), { mode: 0o600 });
  const options = clusterOptions.parse({ servers, name, host: 'a', keyFile });
  const context: CheckContext = { dataDir: tempDir(t), signal: new AbortController().signal };
  return (check: string) => lookAt(check, options, context);
}

test('[C13] doctor cluster says nothing of streams that are not there yet', async (t) => {
  const nats = await startNats(t);
  const look = checksOf(t, nats.url(), clusterName());
  t.is((await look('permissions')).state, 'warn', 'it has made the stream of its checks');
  for (const check of ['replicas', 'streams'])
    t.like(await look(check), { state: 'unknown', found: 'the cluster has no stream yet' });
});

test('[C13] doctor cluster asks each server by its own address, though one in the list is empty', async (t) => {
  const nats = await startNats(t);
  const nobody = 'nats://127.0.0.1:1';
  const both = await checksOf(t, `${nobody},, ${nats.url()},`, clusterName())('reachable');
  t.is(both.lookedAt, `${nobody}, ${nats.url()}`);
  t.regex(both.found, /^nats:\/\/127\.0\.0\.1:1: .*; the others answer \(version /);
  t.like(await checksOf(t, `,${nats.url()}`, clusterName())('reachable'), { state: 'ok' });
});

test('[C13] doctor cluster names a stream that was replaced by a later one, for an operator to delete', async (t) => {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const first = new MirroredHost(t, link);
  await first.mirror(10);
  await first.stop();
  const look = checksOf(t, nats.url(), CLUSTER);
  t.like(await look('streams'), { state: 'ok' });
  const another = new MirroredHost(t, link);
  await another.mirror(10);
  const streams = await look('streams');
  t.is(streams.state, 'warn');
  t.regex(streams.found, /^HF_tests_LOG_one_1: replaced by a later one/);
  await (await link.manager()).streams.delete('HF_tests_LOG_one_1');
  t.like(await look('streams'), { state: 'ok' });
  t.is(await another.mirror(10), 20);
});

test('[C13] doctor cluster names the one server of three that does not answer, and what follows; with two it says that there is no quorum', async (t) => {
  const nats = await startNats(t, { servers: 3 });
  const name = clusterName();
  const a = await openHost(t, nats.urls(), 'a', { name, replicas: 3 });
  await a.everyHost.mark(); // the streams are there
  const look = checksOf(t, nats.urls().join(','), name);

  await read(
    'all copies have caught up',
    () => look('replicas'),
    ({ state }) => state === 'ok',
    500,
  );
  await nats.kill(1);
  const copies = await read(
    'the leaders miss it',
    () => look('replicas'),
    ({ found }) => /does not answer/.test(found) && !/no leader/.test(found),
    1_000,
  );
  t.is(copies.state, 'warn');
  t.regex(copies.found, /^the server n1 does not answer: \d copies are missing(;|$)/);
  t.regex(
    copies.remedy ?? '',
    /^Start n1 again.*the others go on; with the next one .* nothing is taken over/,
  );
  const reached = await look('reachable');
  t.is(reached.state, 'warn');
  t.true(reached.found.startsWith(`${nats.url(1)}: `), reached.found);
  t.regex(reached.remedy ?? '', /the others go on; with the next one/);

  await nats.kill(2);
  const alone = await look('reachable');
  t.is(alone.state, 'fail');
  t.regex(alone.remedy ?? '', /without more than half of the servers nothing is taken over/);
});

test('[C13] doctor cluster cannot tell without a quorum what it could not try, and names the servers', async (t) => {
  const nats = await startNats(t, { servers: 3 });
  const name = clusterName();
  const a = await openHost(t, nats.urls(), 'a', { name, replicas: 3 });
  await a.everyHost.mark(); // the streams are there
  const servers = nats.urls().join(',');
  const look = checksOf(t, servers, name);
  t.is((await look('race')).state, 'ok', 'it has made the stream of its checks');

  await Promise.all([nats.kill(1), nats.kill(2)]);
  for (const result of await Promise.all(['permissions', 'clock', 'race'].map(look))) {
    t.like(result, { state: 'unknown', lookedAt: servers.replaceAll(',', ', ') });
    t.regex(result.remedy ?? '', /try again when `cluster.reachable` and `cluster.replicas` are ok/);
  }
});
