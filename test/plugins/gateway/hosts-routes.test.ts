import { McpServer } from '@modelcontextprotocol/server';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { PluginHost } from '../../../src/core/host/plugin/host.ts';
import { credentialFree, gateway } from '../../../src/plugins/gateway/index.ts';
import { tempDir } from '../../support/temp.ts';
import { joining, MemoryCluster } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';
import { FileRig } from './file-rig.ts';
import { Rig } from './rig.ts';

const free = (url: string) => `credentialFree({ name: 'wiki', url: 'http://127.0.0.1:9/${url}' }),`;
const { signal } = new AbortController();

/** Two hosts, each with a configuration file of its own. */
async function pair(t: ExecutionContext) {
  const cluster = new MemoryCluster();
  const open = (name: string) =>
    FileRig.open(t, free('one'), tempDir(t), undefined, (dataDir) => [joining(cluster.join(name, dataDir))]);
  return { cluster, a: await open('a'), b: await open('b') };
}

test('[C13,G24] a reload on one host has the others read their own files, and says what each made of it', async (t) => {
  const { a, b } = await pair(t);
  a.write(free('two'));
  b.write(free('two'));
  const { status, body } = await a.control('/gateway/reload');
  t.is(status, 200);
  t.like(body, { hosts: [{ host: 'b', revision: 2 }], silent: [] });
  t.deepEqual(
    [await a.serving(), await b.serving()],
    [{ wiki: 'http://127.0.0.1:9/two' }, { wiki: 'http://127.0.0.1:9/two' }],
  );
  b.write('credentialFree({');
  const broken = await a.control('/gateway/reload');
  t.is(broken.status, 200);
  t.regex(broken.body.hosts[0].refused, /could not be loaded/);
  t.deepEqual(await b.serving(), { wiki: 'http://127.0.0.1:9/two' }, 'it serves as before');
});

test('[C13,G24] a rollback on one host is one on all, also by the revision that this host calls it by', async (t) => {
  const { cluster, a, b } = await pair(t);
  await b.reload(free('zero')); // from now on the hosts number their revisions otherwise
  for (const url of ['one', 'two', 'three']) {
    for (const rig of [a, b]) rig.write(free(url));
    t.is((await a.control('/gateway/reload')).status, 200);
  }
  const serve = (url: string) => async () =>
    (await Promise.all([a.serving(), b.serving()])).every(({ wiki }) => wiki === `http://127.0.0.1:9/${url}`);
  await until('both serve the last', serve('three'));
  t.is((await a.control('/gateway/rollback', { route: 'wiki' })).status, 200);
  await until('both went back', serve('two'));
  const { body } = await a.control('/gateway/routes');
  const { revision } = body.routes[0].before.find(({ upstream }: { upstream: string }) =>
    upstream.endsWith('/one'),
  );
  t.is((await a.control('/gateway/rollback', { route: 'wiki', to: revision })).status, 200);
  await until('both went back further', serve('one'));
  t.is((await a.control('/gateway/rollback', { route: 'wiki', to: 99 })).status, 409);
  // A message that comes again rolls nothing back again.
  const before = await b.serving();
  for (const message of cluster.shared) cluster.members.get('b')?.hear(message);
  t.deepEqual(await b.serving(), before);
});

test('[C13,G19] tools that a person accepts on one host are accepted on all', async (t) => {
  const texts = { search: 'Searches.' };
  const serve = (): McpServer => {
    const server = new McpServer({ name: 'changing', version: '1' });
    const told = { description: texts.search, inputSchema: z.object({}) };
    server.registerTool('search', told, async () => ({ content: [] }));
    return server;
  };
  const cluster = new MemoryCluster();
  const open = (name: string) => {
    const dataDir = tempDir(t);
    const routes = [credentialFree({ name: 'notes', server: serve, pin: 'ask' })];
    return Rig.start(t, { probeEveryMs: 50, routes }, dataDir, undefined, [
      joining(cluster.join(name, dataDir)),
    ]);
  };
  const rigs = [await open('a'), await open('b')] as const;
  const are = (value: string) => () =>
    rigs.every(({ runtime }) => runtime.services.actors.snapshot('gateway.tool_pins/notes')?.value === value);
  await until('both saw the tools', are('accepted'));
  texts.search = 'Searches otherwise.';
  await until('both saw the change', are('changed'));
  const accepting = { route: 'notes', by: 'ann' };
  t.is((await postControl(rigs[1].dataDir, '/gateway/tools/accept', accepting, signal)).status, 200);
  await until('both have it accepted', are('accepted'));
});

test('[C13,G24] keys alone are sent to a host that joins: routes and pinned tools are sealed with the own key of each', (t) => {
  const { definition } = gateway();
  const host = new PluginHost([{ definition, options: definition.options.parse({}) }]);
  const { routes } = host.register();
  const everywhere = routes.filter(({ everyHost }) => everyHost);
  const sent = everywhere.filter(({ ownState }) => !ownState).map(({ to }) => to);
  t.deepEqual([...new Set(sent)], ['gateway.key']);
  t.deepEqual(
    everywhere.filter(({ ownState }) => ownState).map(({ to }) => to),
    ['gateway.routes', 'gateway.tool_pins'],
  );
});
