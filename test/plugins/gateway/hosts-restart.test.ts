import { setTimeout as delay } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod/v3';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { startSessionServer } from '../../support/mcp-upstream.ts';
import { RestlessClients } from '../../support/restless-clients.ts';
import { tempDir } from '../../support/temp.ts';
import { joining, MemoryCluster } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

/** A server whose one tool takes its time, and notes for whom it worked. */
function slowServer(worked: string[]): McpServer {
  const server = new McpServer({ name: 'slow', version: '1' });
  server.registerTool('work', { inputSchema: { call: z.string() } }, async ({ call }) => {
    worked.push(call);
    await delay(40);
    return { content: [{ type: 'text', text: 'done' }] };
  });
  return server;
}

const names = ['a', 'b'] as const;

test('[C13,G18] while hosts are started anew one after the other, each call of a client that tries the other one is carried out once', async (t) => {
  const cluster = new MemoryCluster();
  const worked: string[] = [];
  const { url } = await startSessionServer(t, { serve: () => slowServer(worked), json: true });
  const folders = { a: tempDir(t), b: tempDir(t) };
  const start = (name: 'a' | 'b') => startHost(t, cluster, name, folders[name], url);
  const hosts = { a: await start('a'), b: await start('b') };
  const key = await mintOn(hosts.a, hosts.b);
  const begun = await hosts.a.post('/notes/mcp', initialize, admission(key));
  const session = { ...admission(key), 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const clients = new RestlessClients(4, (call, attempt) => {
    const host = hosts[names[(call + attempt) % 2] ?? 'a'];
    const work = { name: 'notes-work', arguments: { call: String(call) } };
    return host.post('/notes/mcp', rpc('tools/call', work, `${call}.${attempt}`), session);
  });
  for (const name of names) {
    await clients.more();
    await hosts[name].runtime.stop('restart');
    await clients.more();
    hosts[name] = await start(name);
  }
  await clients.more();
  await clients.end();
  const { answered, refused, failures } = clients;
  t.log(`${answered} calls, ${refused} refused by a host that stopped`);
  t.deepEqual(failures, []);
  t.is(worked.length, answered, 'none was cut, and carried out again');
  t.is(new Set(worked).size, answered);
});

test('[G18] a stop of the gateway lets a call come to its end, refuses new ones with a hint, and ends streams at once', async (t) => {
  const isDone = Promise.withResolvers<void>();
  let isCalled = false;
  const serve = () => {
    const server = new McpServer({ name: 'slow', version: '1' });
    server.registerTool('work', {}, async () => {
      isCalled = true;
      await isDone.promise;
      return { content: [{ type: 'text', text: 'done' }] };
    });
    return server;
  };
  const { url } = await startSessionServer(t, { serve, json: true });
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'notes', url })] });
  const key = await rig.mint({ servers: ['notes'] });
  const begun = await rig.post('/notes/mcp', initialize, admission(key));
  const session = { ...admission(key), 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const stream = await fetch(`${rig.url}/notes/mcp`, {
    headers: { ...session, accept: 'text/event-stream' },
  });
  t.is(stream.status, 200);
  const call = rig.post('/notes/mcp', rpc('tools/call', { name: 'notes-work' }), session);
  await until('it is under way', () => isCalled);
  const stopping = rig.runtime.stop('test');
  await stream.text();
  const refused = await rig.post('/notes/mcp', rpc('tools/list'), session);
  t.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  isDone.resolve();
  const answer = await call;
  t.is(answer.status, 200);
  t.regex(await answer.text(), /done/);
  await stopping;
});

async function startHost(
  t: ExecutionContext,
  cluster: MemoryCluster,
  name: string,
  dataDir: string,
  url: string,
): Promise<Rig> {
  const member = cluster.join(name, dataDir);
  const routes = [credentialFree({ name: 'notes', url })];
  const rig = await Rig.start(t, { routes }, dataDir, undefined, [joining(member)]);
  member.runtime = rig.runtime;
  return rig;
}

/** A key that two hosts have. */
async function mintOn(...hosts: readonly Rig[]): Promise<string> {
  const value = 'sk-a-value-that-all-hosts-know';
  for (const host of hosts) {
    await host.mint({ servers: ['notes'] }, value);
    if (!host.runtime.services.actors.get(keyActor, keyId(value))) throw new Error('it has no key');
  }
  return value;
}
