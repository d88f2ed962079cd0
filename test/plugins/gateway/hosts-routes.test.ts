import { McpServer } from '@modelcontextprotocol/server';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
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
  for (const message of cluster.shared) await cluster.members.get('b')?.hear(message);
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

  // Who missed what a person accepted hears of it.
  const away = cluster.members.get('a');
  if (!away) throw new Error('there is no host a');
  texts.search = 'Searches once more.';
  await until('both saw the change', are('changed'));
  away.isCut = true;
  t.is((await postControl(rigs[1].dataDir, '/gateway/tools/accept', accepting, signal)).status, 200);
  t.false(are('accepted')(), 'one was away');
  await away.missed();
  await until('both have it accepted', are('accepted'));
});

test('[C13,G24] a host that missed a rollback follows it when it hears of it, one that never served that says so', async (t) => {
  const { cluster, a, b } = await pair(t);
  const both = async (url: string) => {
    for (const rig of [a, b]) rig.write(free(url));
    t.is((await a.control('/gateway/reload')).status, 200);
    await until('both serve it', async () => (await b.serving()).wiki === `http://127.0.0.1:9/${url}`);
  };
  await both('two');
  const away = cluster.members.get('b');
  if (!away) throw new Error('there is no host b');
  away.isCut = true;
  t.is((await a.control('/gateway/rollback', { route: 'wiki' })).status, 200);
  t.is((await b.serving()).wiki, 'http://127.0.0.1:9/two', 'it was away');
  await away.missed();
  await until('it follows', async () => (await b.serving()).wiki === 'http://127.0.0.1:9/one');
  await away.missed();
  const { body } = await b.control('/gateway/routes');
  t.like(body.routes[0], { pinned: true, problem: undefined });

  const c = await FileRig.open(t, free('two'), tempDir(t), undefined, (dataDir) => [
    joining(cluster.join('c', dataDir)),
  ]);
  await cluster.members.get('c')?.missed();
  const unserved = /rolled back to a definition that this host never served/;
  const problem = async () => (await c.control('/gateway/routes')).body.routes[0].problem;
  await until('it says so', async () => unserved.test(await problem()));
  t.is((await c.serving()).wiki, 'http://127.0.0.1:9/two');
  t.regex(JSON.stringify(cluster.members.get('c')?.services?.health()), unserved);
  // A rollback holds until the entry changes.
  for (const rig of [a, b, c]) rig.write(free('three'));
  t.is((await a.control('/gateway/reload')).status, 200);
  for (const rig of [a, b, c])
    await until('it serves the entry', async () => (await rig.serving()).wiki === 'http://127.0.0.1:9/three');
  for (const member of cluster.members.values()) await member.missed();
  t.is(await problem(), undefined);
  for (const rig of [a, b, c]) t.is((await rig.serving()).wiki, 'http://127.0.0.1:9/three');
});

test('[C13,G24] a host whose file differs passes a rollback on to one that was away', async (t) => {
  const { cluster, a, b } = await pair(t);
  for (const rig of [a, b]) rig.write(free('two'));
  t.is((await a.control('/gateway/reload')).status, 200);
  const c = await FileRig.open(t, free('other'), tempDir(t), undefined, (dataDir) => [
    joining(cluster.join('c', dataDir)),
  ]);
  const away = cluster.members.get('b');
  if (!away) throw new Error('there is no host b');
  away.isCut = true;
  t.is((await a.control('/gateway/rollback', { route: 'wiki' })).status, 200);
  await until('it is known there', async () =>
    /files differ/.test((await c.control('/gateway/routes')).body.routes[0].problem),
  );
  cluster.members.get('a')?.leave(); // the machine is lost
  await away.missed();
  await until('it follows', async () => (await b.serving()).wiki === 'http://127.0.0.1:9/one');
  t.is((await c.serving()).wiki, 'http://127.0.0.1:9/other');
});

test('[C13,G24] a rollback waits for the entry that it was about, where a host reads that later', async (t) => {
  const { a, b } = await pair(t);
  a.write(free('two'));
  t.is((await a.control('/gateway/reload')).status, 200);
  t.is((await a.control('/gateway/rollback', { route: 'wiki' })).status, 200);
  t.is((await b.reload(free('two'))).status, 200);
  t.is((await b.serving()).wiki, 'http://127.0.0.1:9/one');
  t.is((await a.control('/gateway/rollback', { route: 'wiki' })).status, 200, 'it is taken back');
  for (const rig of [a, b])
    await until('both serve it', async () => (await rig.serving()).wiki === 'http://127.0.0.1:9/two');
});
