import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startSessionServer } from '../../support/mcp-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

/** An upstream that asks its client, speaks up by itself, and has a prompt and a resource. */
function talker(name: string, sessions: McpServer[], cancelled: string[]): McpServer {
  const capabilities = { logging: {}, tools: {} };
  const server = new McpServer({ name, version: '1.0.0' }, { capabilities, instructions: `Ask ${name}.` });
  server.registerTool('ask', {}, async (extra) => {
    const params = {
      messages: [{ role: 'user' as const, content: { type: 'text' as const, text: name } }],
      maxTokens: 5,
    };
    const { content } = await server.server.createMessage(params, { relatedRequestId: extra.requestId });
    return { content: [content].flat() as { type: 'text'; text: string }[] };
  });
  server.registerTool('wait', {}, async ({ signal, sendNotification, _meta }) => {
    const progressToken = _meta?.progressToken ?? '';
    await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    cancelled.push(name);
    return { content: [] };
  });
  server.registerPrompt('greet', {}, async () => ({
    messages: [{ role: 'user', content: { type: 'text', text: `hello from ${name}` } }],
  }));
  server.registerResource('page', `${name}://page`, {}, async (uri) => ({
    contents: [{ uri: uri.href, text: name }],
  }));
  sessions.push(server);
  return server;
}

async function setUp(t: ExecutionContext<unknown>) {
  const sessions: Record<'wiki' | 'docs', McpServer[]> = { wiki: [], docs: [] };
  const cancelled: string[] = [];
  const wiki = await startSessionServer(t, { serve: () => talker('wiki', sessions.wiki, cancelled) });
  const docs = await startSessionServer(t, { serve: () => talker('docs', sessions.docs, cancelled) });
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const key = admission(await rig.mint({ servers: ['wiki', 'docs'] }));
  const client = new Client({ name: 'test', version: '1.0.0' }, { capabilities: { sampling: {} } });
  const sampled: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    const text = JSON.stringify(params.messages);
    sampled.push(text);
    return {
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: `answer to ${/wiki|docs/.exec(text)}` },
    };
  });
  const heard: unknown[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    heard.push(params.data);
  });
  return { rig, key, client, heard, cancelled, wiki, docs, sessions };
}

async function until(t: ExecutionContext<unknown>, what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.fail(`not within ten seconds: ${what}`);
}

test('[G23,G12] what two servers ask at once is answered to the one that asked', async (t) => {
  const { rig, key, client } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  t.is(client.getInstructions(), '# wiki\nAsk wiki.\n\n# docs\nAsk docs.');
  const answers = await Promise.all(
    ['wiki', 'docs'].map((server) => client.callTool({ name: `${server}-ask` })),
  );
  t.deepEqual(
    answers.map(({ content }) => content),
    ['wiki', 'docs'].map((server) => [{ type: 'text', text: `answer to ${server}` }]),
  );
});

test('[G18,G23] a server that restarted learns again what its client can, and may ask it', async (t) => {
  const { rig, key, client, wiki } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  wiki.forget();
  const { content } = await client.callTool({ name: 'wiki-ask' });
  t.deepEqual(content, [{ type: 'text', text: 'answer to wiki' }]);
});

test('[G23,G12] what all servers say by themselves comes on one stream', async (t) => {
  const { rig, key, client, heard, wiki, docs, sessions } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const listening = () => [wiki, docs].every(({ asked }) => asked.some(({ method }) => method === 'GET'));
  await until(t, 'both streams are open', listening);
  for (const server of ['wiki', 'docs'] as const) {
    await sessions[server].at(-1)?.server.sendLoggingMessage({ level: 'info', data: `from ${server}` });
  }
  await until(t, 'both are heard', () => heard.length === 2);
  t.deepEqual(heard.toSorted(), ['from docs', 'from wiki']);
});

test('[G23] progress comes while a call goes on, and its cancellation reaches its server', async (t) => {
  const { rig, key, client, cancelled } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const abort = new AbortController();
  const progress: number[] = [];
  const call = client.callTool({ name: 'docs-wait' }, undefined, {
    signal: abort.signal,
    onprogress: (one) => {
      progress.push(one.progress);
      abort.abort('enough');
    },
  });
  await t.throwsAsync(call, { message: /enough/ });
  t.deepEqual(progress, [1]);
  await until(t, 'the server stops', () => cancelled.length > 0);
  t.deepEqual(cancelled, ['docs']);
});

test('[G12] prompts bear their server in front, and a resource is found by its own URI', async (t) => {
  const { rig, key, client } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const { prompts } = await client.listPrompts();
  t.deepEqual(
    prompts.map(({ name }) => name),
    ['wiki-greet', 'docs-greet'],
  );
  const { messages } = await client.getPrompt({ name: 'docs-greet' });
  t.like(messages[0]?.content, { text: 'hello from docs' });
  const { resources } = await client.listResources();
  t.deepEqual(
    resources.map(({ uri }) => uri),
    ['wiki://page', 'docs://page'],
  );
  t.like((await client.readResource({ uri: 'docs://page' })).contents[0], { text: 'docs' });
  await t.throwsAsync(client.readResource({ uri: 'none://page' }));
  await t.notThrowsAsync(client.setLoggingLevel('debug'));
});

test('[G23] an answer that no server asked for is refused', async (t) => {
  const { rig, key } = await setUp(t);
  const first = await rig.post('/mcp/', initialize, key);
  const session = { ...key, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  for (const id of [1, 'wiki', 'wiki:{}', 'other:1']) {
    const answer = await rig.post('/mcp/', { jsonrpc: '2.0', id, result: {} }, session);
    t.is(answer.status, 400, String(id));
  }
  t.is((await rig.post('/mcp/', { jsonrpc: '2.0', id: 'wiki:1', result: {} }, session)).status, 202);
  const unknown = await rig.post('/mcp/', rpc('no/such'), session);
  t.like(await unknown.json(), { error: { code: -32_601 } });
});
