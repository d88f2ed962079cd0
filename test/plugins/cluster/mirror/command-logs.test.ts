import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { connectLogs } from '../../../../src/plugins/cluster/mirror/command-logs.ts';
import { clusterOptions } from '../../../../src/plugins/cluster/options.ts';
import { openLink, strangersKey } from '../../../support/cluster.ts';
import { clusterName, openHost } from '../../../support/message-hosts.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { Scope } from '../../../support/scope.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);

/** What a command on a new machine reads of the logs. */
async function logsOf(t: Scope, name: string, servers = nats().url()) {
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, Buffer.alloc(32, 'the key of a cluster of tests'), { mode: 0o600 });
  const logs = await connectLogs(clusterOptions.parse({ servers, name, host: 'a', keyFile }));
  t.teardown(() => logs.close());
  return logs;
}

test('[C13] a host counts as running while it answers, and not because somebody sends its last beat again', async (t) => {
  const name = clusterName();
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  let again: (() => void) | undefined;
  stranger.listen(`hf.${name}.beat.a`, ({ subject, data, headers }) => {
    const beat = data.slice();
    again ??= () => stranger.connected().publish(subject, beat, headers && { headers });
  });
  await stranger.connected().flush();
  const a = await openHost(t, nats().url(), 'a', { name });
  const logs = await logsOf(t, name);
  t.true(await logs.isRunning('a'));
  await until('a beat is recorded', () => again);
  await a.stop();
  await a.link.close();
  const timer = setInterval(() => again?.(), 100);
  t.teardown(() => clearInterval(timer));
  t.false(await logs.isRunning('a'));
});

test('[C13] a host does not count as gone because the connection was lost while it was asked', async (t) => {
  const name = clusterName();
  const proxy = await nats().proxyTo(0);
  const logs = await logsOf(t, name, proxy.url);
  const witness = await openLink(t, nats().url(), { name });
  let questions = 0;
  witness.listen(`hf.${name}.is.a`, () => {
    questions += 1;
  });
  await witness.connected().flush();
  const asking = logs.isRunning('a');
  // What would be asked later fails by itself.
  await until('all questions are asked', () => questions === 3);
  proxy.refuse();
  await t.throwsAsync(asking, { code: 'HF_CLUSTER_UNREACHABLE' });
});
