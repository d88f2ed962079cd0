import { once } from 'node:events';
import { setTimeout as after } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { McpServer as LocalMcpServer } from '@modelcontextprotocol/server';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { conformanceServer } from '../../support/conformance-server.ts';
import { startSessionServer } from '../../support/mcp-upstream.ts';
import { answerEmpty, startScripted } from '../../support/scripted-upstream.ts';
import { read } from '../../support/until.ts';
import { send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

/** A server with one tool that waits for the test. */
function gated() {
  const opened = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const servers: McpServer[] = [];
  const serve = () => {
    const server = new McpServer({ name: 'gated', version: '1.0.0' });
    server.registerTool('wait', {}, async (extra) => {
      const progressToken = extra._meta?.progressToken ?? 0;
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      });
      extra.signal.addEventListener('abort', () => cancelled.resolve());
      await Promise.race([opened.promise, once(extra.signal, 'abort')]);
      return { content: [{ type: 'text', text: 'done' }] };
    });
    servers.push(server);
    return server;
  };
  return { serve, opened, cancelled: cancelled.promise, servers };
}

async function behind(t: ExecutionContext<unknown>, url: string) {
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url })] });
  return { rig, key: await rig.mint({ servers: ['wiki'] }) };
}

const WAIT = { method: 'tools/call' as const, params: { name: 'wiki-wait' } };

test('[G23] progress reaches the client while the tool still runs', async (t) => {
  const { serve, opened } = gated();
  const { rig, key } = await behind(t, (await startSessionServer(t, { serve })).url);
  const client = await rig.connect(t, 'wiki', key);
  const progressed = Promise.withResolvers<number>();
  const call = client.request(WAIT, CallToolResultSchema, {
    onprogress: ({ progress }) => progressed.resolve(progress),
  });
  t.is(await progressed.promise, 1);
  opened.resolve();
  t.like(await call, { content: [{ type: 'text', text: 'done' }] });
  t.like(await rig.whenEnded('tools/call'), { outcome: 'ok', status: 200 });
});

test('[G23] a cancellation reaches the tool, and so does a client that leaves', async (t) => {
  const { serve, cancelled } = gated();
  const { rig, key } = await behind(t, (await startSessionServer(t, { serve })).url);
  const client = await rig.connect(t, 'wiki', key);
  const controller = new AbortController();
  const call = client.request(WAIT, CallToolResultSchema, {
    signal: controller.signal,
    onprogress: () => controller.abort('enough'),
  });
  await t.throwsAsync(call, { message: /enough/ });
  await cancelled;

  const left = Promise.withResolvers<void>();
  const scripted = await startScripted(t, (response, heard) => {
    if (!heard.text.includes('tools/call')) return answerEmpty(response, heard, undefined as never);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    return response.once('close', () => left.resolve());
  });
  const other = await behind(t, scripted.url);
  const endpoint = `${other.rig.url}/wiki/mcp`;
  const good = { 'content-type': 'application/json', accept: MEDIA, ...admission(other.key) };
  const opened = await send(endpoint, { headers: good, body: initialize });
  const headers = { ...good, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  const leaving = new AbortController();
  await fetch(endpoint, {
    method: 'POST',
    headers,
    body: JSON.stringify(rpc('tools/call', { name: 'wiki-x' })),
    signal: leaving.signal,
  });
  leaving.abort();
  await left.promise;
  t.like(await other.rig.whenEnded('tools/call'), { outcome: 'cancelled' });
});

test('[G23] what a server says by itself reaches its client: changed tools on the stream of a session', async (t) => {
  const { serve, servers } = gated();
  const upstream = await startSessionServer(t, { serve });
  const { rig, key } = await behind(t, upstream.url);
  const changed = Promise.withResolvers<void>();
  const client = await rig.connect(t, 'wiki', key);
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve());
  while (!upstream.asked.some(({ method }) => method === 'GET')) await after(5);
  const said = setInterval(() => servers.at(-1)?.sendToolListChanged(), 20);
  await changed.promise;
  clearInterval(said);
  t.pass();
});

test('[G23] of two clients each gets the requests of its own session', async (t) => {
  const upstream = await startSessionServer(t, { serve: conformanceServer });
  const { rig, key } = await behind(t, upstream.url);
  const clients = await Promise.all(
    ['first', 'second'].map(async (name) => {
      const client = new Client({ name, version: '1' }, { capabilities: { sampling: {} } });
      client.setRequestHandler(CreateMessageRequestSchema, () => ({
        role: 'assistant',
        model: 'none',
        content: { type: 'text', text: name },
      }));
      const requestInit = { headers: admission(key) };
      const url = new URL(`${rig.url}/wiki/mcp`);
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit }) as never);
      t.teardown(() => client.close());
      return client;
    }),
  );
  const call = { name: 'wiki-test_sampling', arguments: { prompt: 'who' } };
  const answers = await Promise.all(clients.map((client) => client.callTool(call)));
  t.deepEqual(
    answers.map(({ content }) => (content as { text: string }[])[0]?.text),
    ['LLM response: first', 'LLM response: second'],
  );
});

test('[G23] a stream that broke off is taken up where it ended, by Last-Event-ID', async (t) => {
  const upstream = await startSessionServer(t, { serve: conformanceServer, resumable: true });
  const { rig, key } = await behind(t, upstream.url);
  const client = await rig.connect(t, 'wiki', key);
  const result = await client.callTool({ name: 'wiki-test_reconnection', arguments: {} });
  t.like(result, { content: [{ text: 'Reconnection test completed successfully' }] });
  t.true(upstream.asked.some(({ headers }) => headers['last-event-id'] !== undefined));
});

test('[G23] an answer of a server in this process that broke off is taken up where it ended, by Last-Event-ID', async (t) => {
  const isBrokenOff = Promise.withResolvers<void>();
  const serve = () => {
    const server = new LocalMcpServer({ name: 'notes', version: '1' });
    server.registerTool('work', {}, async ({ mcpReq }) => {
      const params = { progressToken: 'p', progress: 1 };
      await mcpReq.notify({ method: 'notifications/progress', params });
      await isBrokenOff.promise;
      return { content: [{ type: 'text', text: 'done' }] };
    });
    return server;
  };
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'notes', server: serve })] });
  const key = admission(await rig.mint({ servers: ['notes'] }));
  const begun = await rig.post('/notes/mcp', initialize, key);
  await begun.text();
  const session = { ...key, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const call = rpc('tools/call', { name: 'notes-work', _meta: { progressToken: 'p' } });
  const answer = (await rig.post('/notes/mcp', call, session)).body?.getReader();
  const { value } = (await answer?.read()) ?? {};
  const [, id = ''] = /^id: (.+)$/m.exec(Buffer.from(value ?? []).toString()) ?? [];
  t.not(id, '');
  await answer?.cancel();
  isBrokenOff.resolve();
  const headers = { ...session, accept: 'text/event-stream', 'last-event-id': id };
  const takeUp = () => fetch(`${rig.url}/notes/mcp`, { headers });
  // Until the server knows that nobody reads the first one any more, there is a conflict.
  const rest = await read('it is taken up', takeUp, ({ status }) => status === 200);
  const reader = rest.body?.getReader();
  let text = '';
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    text += Buffer.from(part.value).toString();
    if (text.includes('done')) break;
  }
  await reader?.cancel();
  t.regex(text, /"content":\[\{"type":"text","text":"done"\}\]/);
  t.false(text.includes('progress'), 'what the client has does not come again');
});

test('[G23] a closed session is closed at its upstream, and gone for the client', async (t) => {
  const upstream = await startSessionServer(t, { serve: conformanceServer });
  const { rig, key } = await behind(t, upstream.url);
  const client = await rig.connect(t, 'wiki', key);
  const transport = client.transport as unknown as StreamableHTTPClientTransport;
  const headers = { ...admission(key), 'mcp-session-id': transport.sessionId ?? '' };
  await transport.terminateSession();
  t.is(upstream.asked.at(-1)?.method, 'DELETE');
  upstream.forget();
  t.is((await rig.post('/wiki/mcp', rpc('tools/list'), headers)).status, 404);
});

test('[G5,G10,G23] a tool list on a resumed stream is renamed and filtered too; all else passes byte for byte', async (t) => {
  const list = { jsonrpc: '2.0', id: 1, result: { tools: [{ name: 'a' }, { name: 'b' }] } };
  const other = 'retry: 5\r\nid: 1\r\ndata:\r\n\r\n: comment\n\nevent: message\ndata: {"n": 1.0}\n\n';
  const upstream = await startScripted(t, (response, heard, request) => {
    if (heard.method !== 'GET') return answerEmpty(response, heard, request);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    // cut in the middle of an event
    response.write(`${other}id: 7\nevent: message\nda`);
    return setImmediate(() => response.end(`ta: ${JSON.stringify(list)}\n\n`));
  });
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const good = { accept: MEDIA, ...admission(await rig.mint({ servers: ['wiki'], tools: ['wiki-a'] })) };
  const first = await rig.post('/wiki/mcp', initialize, good);
  const headers = {
    ...good,
    'mcp-session-id': first.headers.get('mcp-session-id') ?? '',
    'last-event-id': '6',
  };
  const { text } = await send(`${rig.url}/wiki/mcp`, { method: 'GET', headers });
  const shown = { ...list, result: { tools: [{ name: 'wiki-a' }] } };
  t.is(text, `${other}id: 7\nevent: message\ndata: ${JSON.stringify(shown)}\n\n`);
});
