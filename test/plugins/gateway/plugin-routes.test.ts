import { join } from 'node:path';
import { Client as StatelessClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test, { type ExecutionContext } from 'ava';
import type { PluginEntry } from '../../../src/index.ts';
import { routeHealthActor } from '../../../src/plugins/gateway/health/actor.ts';
import { credentialFree, overwrite } from '../../../src/plugins/gateway/index.ts';
import { root } from '../../support/cli.ts';
import { greeter, rival } from '../../support/greeter-plugin.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { FileRig } from './file-rig.ts';
import { admission, Rig, rpc } from './rig.ts';
import { until } from './talkers.ts';

type Routes = readonly { readonly name: string; readonly upstream?: string; readonly reason?: string }[];

const open = (t: ExecutionContext, others: readonly PluginEntry[], routes: unknown[] = []) =>
  Rig.start(t, { routes }, undefined, undefined, others);

const greet = async (client: Pick<Client, 'callTool'>, name = 'Ada') => {
  const { content } = await client.callTool({ name: 'greeter-greet', arguments: { name } });
  return (content as { text: string }[])[0]?.text;
};

test('[G1,C11] a route that a plugin brings is served in this process, to clients with sessions and without, and recorded like any other', async (t) => {
  const rig = await open(t, [greeter()]);
  const key = await rig.mint({ servers: ['greeter'] });
  const client = await rig.connect(t, 'greeter', key);
  const { tools } = await client.listTools();
  t.deepEqual(
    tools.map(({ name, description }) => [name, description]),
    [['greeter-greet', 'Greets.']],
  );
  t.is(await greet(client), 'hello Ada');

  const stateless = new StatelessClient({ name: 'test', version: '1' });
  t.teardown(() => stateless.close());
  await stateless.connect(
    new StreamableHTTPClientTransport(new URL(`${rig.url}/greeter/mcp`), {
      requestInit: { headers: admission(key) },
    }),
  );
  t.is(await greet(stateless as never, 'Bob'), 'hello Bob');

  const aggregate = await rig.connectTo(t, '/mcp/', admission(key));
  t.is(await greet(aggregate, 'Cleo'), 'hello Cleo');
  const calls = (await rig.ended(3)).filter(({ method }) => method === 'tools/call');
  t.deepEqual(
    calls.map(({ outcome }) => outcome),
    ['ok', 'ok', 'ok'],
  );
});

test('[G3,G25] a key without the route and a caller without a key are refused before the server sees them', async (t) => {
  const greeted: string[] = [];
  const { definition } = greeter();
  const watched = { definition: { ...definition, start: () => ({ greeted }) }, options: {} } as PluginEntry;
  const rig = await open(t, [watched]);
  const call = rpc('tools/call', { name: 'greeter-greet', arguments: { name: 'Eve' } });
  t.is((await rig.post('/greeter/mcp', call)).status, 401);
  const other = await rig.connect(t, 'greeter', await rig.mint({ servers: ['another'] }));
  t.deepEqual((await other.listTools()).tools, []);
  t.regex((await greet(other, 'Eve')) ?? '', /not allowed to call this tool/);
  const client = await rig.connect(t, 'greeter', await rig.mint({ servers: ['greeter'] }));
  t.is(await greet(client), 'hello Ada');
  t.deepEqual(greeted, ['Ada']);
});

test('[G4] a session that is unknown to the server of this process gets 404, and DELETE ends one', async (t) => {
  const rig = await open(t, [greeter()]);
  const client = await rig.connect(t, 'greeter', await rig.mint({ servers: ['greeter'] }));
  const { transport } = client as unknown as { transport: { terminateSession(): Promise<void> } };
  t.is(await greet(client), 'hello Ada');
  await transport.terminateSession();
  await t.throwsAsync(greet(client), { message: /404|[Ss]ession/ });
});

test('[G23] a client that leaves ends its call in the server of this process', async (t) => {
  const greeted: string[] = [];
  const { definition } = greeter();
  const watched = { definition: { ...definition, start: () => ({ greeted }) }, options: {} } as PluginEntry;
  const rig = await open(t, [watched]);
  const client = await rig.connect(t, 'greeter', await rig.mint({ servers: ['greeter'] }));
  const leaving = new AbortController();
  const call = client.callTool({ name: 'greeter-greet', arguments: { name: 'slow' } }, undefined, {
    signal: leaving.signal,
  });
  await until(t, 'the call is there', () => greeted.length === 1);
  leaving.abort();
  await t.throwsAsync(call);
  await until(t, 'the call was given up', () => greeted.includes('gave up'));
  t.deepEqual(greeted, ['slow', 'gave up']);
});

test('[G2] two plugins with one route are refused by both names, and the other routes serve', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await open(t, [greeter(), rival()], [credentialFree({ name: 'repo_wiki', url: upstream.url })]);
  const health = rig.runtime.health().gateway as { ok: boolean; reason: string; routes: number };
  t.false(health.ok);
  t.regex(health.reason, /route greeter: the plugins greeter and rival both bring it: keep one of them/);
  t.is(health.routes, 1);
});

test("[G1] an entry of the operator's overrides the settings of a plugin's route, and replaces it where it has an upstream", async (t) => {
  const upstream = await startUpstream(t);
  const overridden = await open(t, [greeter()], [overwrite({ name: 'greeter', prefix: false })]);
  const key = await overridden.mint({ servers: ['greeter'] });
  const { tools } = await (await overridden.connect(t, 'greeter', key)).listTools();
  t.deepEqual(
    tools.map(({ name }) => name),
    ['greet'],
  );
  const replaced = await open(t, [greeter()], [credentialFree({ name: 'greeter', url: upstream.url })]);
  const client = await replaced.connect(t, 'greeter', await replaced.mint({ servers: ['greeter'] }));
  t.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['greeter-echo', 'greeter-fail'],
  );
});

test('[G24,C11] a changed file changes the route of a plugin without a restart, and takes it away with the plugin', async (t) => {
  const imports = `import { greeter } from ${JSON.stringify(join(root, 'test/support/greeter-plugin.ts'))};`;
  const withWords = (words: string) => ({ imports, plugins: `greeter({ words: '${words}' }),` });
  const rig = await FileRig.open(t, '', undefined, withWords('hello'));
  const routes = async () => (await rig.control('/gateway/routes')).body.routes as Routes;
  t.like(await routes(), [{ name: 'greeter', upstream: 'in this process (plugin greeter)' }]);
  const key = await rig.mint({ servers: ['greeter'] });
  t.is(await greet(await rig.connect(t, 'greeter', key)), 'hello Ada');

  t.is((await rig.reload('', withWords('good day'))).status, 200);
  t.is(await greet(await rig.connect(t, 'greeter', key)), 'good day Ada');

  const upstream = await startUpstream(t);
  const elsewhere = { imports, plugins: `greeter({ url: '${upstream.url}' }),` };
  t.is((await rig.reload('', elsewhere)).status, 200);
  t.deepEqual(
    (await (await rig.connect(t, 'greeter', key)).listTools()).tools.map(({ name }) => name),
    ['greeter-echo', 'greeter-fail'],
  );
  t.like(await routes(), [{ upstream: `${upstream.url} (plugin greeter)` }]);

  t.is((await rig.reload('')).status, 200);
  t.deepEqual(await routes(), []);
});

test('[G17] a server that is loaded on demand is not probed and unknown, also after a restart, until a client calls it', async (t) => {
  const dataDir = tempDir(t);
  const { url, asked } = await startUpstream(t);
  const options = { probeEveryMs: 200, routes: [credentialFree({ name: 'other', url })] };
  const begin = () => Rig.start(t, options, dataDir, undefined, [greeter({ onDemand: true })]);
  const found = (rig: Rig) =>
    (rig.runtime.health().gateway as { upstreams: Record<string, { state: string }> }).upstreams.greeter;
  /** Each route is probed within 200 ms, then every 180 to 220: the third of one comes after the first of all. */
  const threeProbes = async () => {
    const probes = () => asked.filter(({ method }) => method === 'DELETE').length;
    const before = probes();
    await until(t, 'the other route is probed', () => probes() >= before + 3);
  };
  const unknown = { state: 'unknown', reason: 'not called yet: its server is loaded with the first call' };
  const rig = await begin();
  await threeProbes();
  t.deepEqual(found(rig), unknown);

  t.is(await greet(await rig.connect(t, 'greeter', await rig.mint({ servers: ['greeter'] }))), 'hello Ada');
  await until(t, 'it is probed after the call', () => found(rig)?.state === 'healthy');
  t.like(found(rig), { tools: 1 });
  await rig.runtime.stop('test');

  const again = await begin();
  await threeProbes();
  t.deepEqual(found(again), unknown);
  t.is(again.runtime.services.actors.get(routeHealthActor, 'greeter')?.value, 'unknown');
});

test('[G17] the probe lists the tools of a server in this process', async (t) => {
  const { definition, options } = greeter();
  const rig = await Rig.start(t, { probeEveryMs: 1_000, routes: [] }, undefined, undefined, [
    { definition, options },
  ]);
  const greeterHealth = () => {
    const { upstreams } = rig.runtime.health().gateway as { upstreams: Record<string, { state: string }> };
    return upstreams.greeter;
  };
  await until(t, 'it is healthy', () => greeterHealth()?.state === 'healthy');
  t.like(greeterHealth(), { tools: 1 });
});
