import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startSessionServer, startUpstream } from '../../support/mcp-upstream.ts';
import { startStateless } from '../../support/stateless-upstream.ts';
import { admission, Rig } from './rig.ts';

const EVERYTHING = '@modelcontextprotocol/server-everything/dist/server/index.js';

const textOf = (result: object): string =>
  (result as { content: { text: string }[] }).content.map(({ text }) => text).join('\n');

async function behind(t: ExecutionContext<unknown>, name: string, url: string) {
  const rig = await Rig.start(t, { routes: [credentialFree({ name, url })] });
  const key = await rig.mint({ servers: [name] });
  return { rig, key, endpoint: new URL(`${rig.url}/${name}/mcp`), requestInit: { headers: admission(key) } };
}

test('[G4,G10,G23] the reference server works through the gateway: tools, resources, prompts, and what it asks of its client', async (t) => {
  const { createServer } = await import(EVERYTHING);
  const cleanups: (() => void)[] = [];
  t.teardown(() => {
    for (const cleanup of cleanups) cleanup();
  });
  const upstream = await startSessionServer(t, {
    serve() {
      const { server, cleanup } = createServer();
      cleanups.push(cleanup);
      return server;
    },
  });
  const { endpoint, requestInit } = await behind(t, 'everything', upstream.url);
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { sampling: {}, elicitation: {} } },
  );
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'sampled' },
  }));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
  await client.connect(new StreamableHTTPClientTransport(endpoint, { requestInit }) as never);
  t.teardown(() => client.close());

  const call = (name: string, given: Record<string, unknown> = {}) =>
    client.callTool({ name: `everything-${name}`, arguments: given });
  const { tools } = await client.listTools();
  t.true(tools.length > 10);
  t.true(tools.every(({ name }) => name.startsWith('everything-')));
  t.is(textOf(await call('echo', { message: 'hello' })), 'Echo: hello');
  t.regex(textOf(await call('get-sum', { a: 2, b: 3 })), /5/);
  t.regex(textOf(await call('trigger-sampling-request', { prompt: 'x' })), /sampled/);
  t.regex(textOf(await call('trigger-elicitation-request')), /Ada/);
  const progress: number[] = [];
  const slow = { name: 'everything-trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } };
  await client.callTool(slow, undefined, { onprogress: (told) => void progress.push(told.progress) });
  t.deepEqual(progress, [1, 2, 3, 4]);
  const { resources } = await client.listResources();
  t.true(resources.length > 0);
  const read = await client.readResource({ uri: resources[0]?.uri ?? '' });
  t.is(read.contents.length, 1);
  const { prompts } = await client.listPrompts();
  t.true(prompts.some(({ name }) => name === 'simple-prompt'));
});

async function connectNew(
  t: ExecutionContext<unknown>,
  { endpoint, requestInit }: { endpoint: URL; requestInit: RequestInit },
  mode: 'auto' | { pin: string },
): Promise<NewClient> {
  const client = new NewClient({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new NewTransport(endpoint, { requestInit }));
  t.teardown(() => client.close());
  return client;
}

test('[G4,G10] client and server of revision 2026-07-28 work through the gateway, header by header', async (t) => {
  const upstream = await startStateless(t);
  const client = await connectNew(t, await behind(t, 'atlas', upstream.url), { pin: '2026-07-28' });
  const { tools } = await client.listTools();
  t.deepEqual(
    tools.map(({ name }) => name),
    ['atlas-where'],
  );
  t.is(textOf(await client.callTool({ name: 'atlas-where', arguments: { region: 'eu' } })), 'eu');
  t.like(upstream.asked.at(-1)?.headers, { 'mcp-name': 'where', 'mcp-param-region': 'eu' });
  t.is(textOf(await client.callTool({ name: 'atlas-where', arguments: { region: 'Zürich' } })), 'Zürich');
  t.regex(String(upstream.asked.at(-1)?.headers['mcp-param-region']), /^=\?base64\?/);
  t.false(upstream.asked.some(({ headers }) => 'mcp-session-id' in headers));
});

test('[G23] a subscription of revision 2026-07-28 hears of changed tools, and ends at its upstream when it is closed', async (t) => {
  const upstream = await startStateless(t);
  const { rig, ...target } = await behind(t, 'atlas', upstream.url);
  const client = await connectNew(t, target, { pin: '2026-07-28' });
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve());
  const subscription = await client.listen({ toolsListChanged: true });
  upstream.handler.notify.toolsChanged();
  await changed.promise;
  await subscription.close();
  const ended = await rig.whenEnded('subscriptions/listen');
  t.is(ended.outcome, 'cancelled');
});

test('[G4] a client of both revisions falls back to sessions in front of a server that has only those', async (t) => {
  const upstream = await startUpstream(t);
  const client = await connectNew(t, await behind(t, 'wiki', upstream.url), 'auto');
  t.is(textOf(await client.callTool({ name: 'wiki-echo', arguments: { text: 'hello' } })), 'hello');
  t.true(upstream.asked.some(({ headers }) => 'mcp-session-id' in headers));
});

test('[G5] an unentitled client of revision 2026-07-28 connects, sees no tools, and is refused by name', async (t) => {
  const upstream = await startStateless(t);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'atlas', url: upstream.url })] });
  const requestInit = { headers: admission(await rig.mint({})) };
  const target = { endpoint: new URL(`${rig.url}/atlas/mcp`), requestInit };
  const client = await connectNew(t, target, { pin: '2026-07-28' });
  t.deepEqual((await client.listTools()).tools, []);
  const refused = await client.callTool({ name: 'atlas-where', arguments: {} });
  t.true(refused.isError);
  t.is(textOf(refused), 'Error: User not allowed to call this tool.');
  t.deepEqual(upstream.asked, []);
});
