import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import test, { type ExecutionContext } from 'ava';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';
import { setUp, until } from './talkers.ts';

async function connect(
  t: ExecutionContext<unknown>,
  rig: Rig,
  headers: Readonly<Record<string, string>>,
  client: Client = new Client({ name: 'test', version: '1.0.0' }),
): Promise<Client> {
  await client.connect(
    new SSEClientTransport(new URL(`${rig.url}/mcp/sse`), { requestInit: { headers } }) as never,
  );
  t.teardown(() => client.close());
  return client;
}

test('[G12] /mcp/sse lists the same tools as /mcp/, chosen by the same header, and calls them', async (t) => {
  const { rig, key, client } = await setUp(t);
  const streamable = await rig.connectTo(t, '/mcp/', key);
  await connect(t, rig, key, client);
  t.deepEqual(await client.listTools(), await streamable.listTools());
  t.is((await client.listTools()).tools.length, 4);
  t.deepEqual((await client.callTool({ name: 'docs-ask' })).content, [
    { type: 'text', text: 'answer to docs' },
  ]);
  const one = await connect(t, rig, { ...key, 'x-mcp-servers': 'docs' });
  t.deepEqual(
    (await one.listTools()).tools.map(({ name }) => name),
    ['docs-ask', 'docs-wait'],
  );
  const none = await connect(t, rig, { ...key, 'x-mcp-servers': 'dosc' });
  t.deepEqual((await none.listTools()).tools, []);
  t.true((await none.callTool({ name: 'docs-ask' })).isError);
});

test('[G12,G23] on /mcp/sse the servers are heard, a long call holds nobody up, and leaving ends their sessions', async (t) => {
  const { rig, key, client, heard, wiki, docs, sessions } = await setUp(t);
  await connect(t, rig, key, client);
  const listening = () => [wiki, docs].every(({ asked }) => asked.some(({ method }) => method === 'GET'));
  await until(t, 'both streams are open', listening);
  const long = client.callTool({ name: 'wiki-wait' }).catch(() => 'cut');
  t.deepEqual((await client.callTool({ name: 'docs-ask' })).content, [
    { type: 'text', text: 'answer to docs' },
  ]);
  await sessions.docs.at(-1)?.server.sendLoggingMessage({ level: 'info', data: 'hello' });
  await until(t, 'it is heard', () => heard.length > 0);
  await client.close();
  t.is(await long, 'cut');
  const left = () => [wiki, docs].every(({ asked }) => asked.some(({ method }) => method === 'DELETE'));
  await until(t, 'the sessions are ended', left);
});

test('[G12,G3,G5] /mcp/sse admits as every route: nobody without a key, and a key without servers sees none', async (t) => {
  const { rig, key, wiki, docs } = await setUp(t);
  const stranger = await fetch(`${rig.url}/mcp/sse`, { headers: { accept: 'text/event-stream' } });
  t.is(stranger.status, 401);
  await stranger.body?.cancel();
  const other = admission(await rig.mint({}));
  const nobody = await connect(t, rig, other);
  t.deepEqual((await nobody.listTools()).tools, []);
  t.true((await nobody.callTool({ name: 'wiki-ask' })).isError);
  t.deepEqual([wiki.asked, docs.asked], [[], []]);
  const stream = await fetch(`${rig.url}/mcp/sse`, { headers: { ...key, accept: 'text/event-stream' } });
  const reader = stream.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  const endpoint = /data: (\S+)/.exec(Buffer.from(value ?? []).toString('utf8'))?.[1] ?? '';
  t.is((await rig.post(endpoint, initialize, { accept: MEDIA })).status, 401);
  t.is((await rig.post(endpoint, initialize, other)).status, 404, "another key's stream");
  t.is((await rig.post('/mcp/sse?session=none', initialize, key)).status, 404);
  t.is((await rig.post(endpoint, '{', key)).status, 400);
  await reader?.cancel();
});

test('[G12] clients of /mcp/sse that are gone before their call is decided harm nobody', async (t) => {
  const { rig, key, client } = await setUp(t);
  const { hostname, port } = new URL(rig.url);
  const given = { host: hostname, accept: 'text/event-stream', ...admission(await rig.mint({})) };
  const head = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`);
  let begun = 0;
  const open = async () => {
    const socket = connectSocket(Number(port), hostname).on('error', () => {});
    socket.once('data', () => {
      begun += 1;
    });
    await once(socket, 'connect');
    socket.write(`GET /mcp/sse HTTP/1.1\r\n${head.join('')}\r\n`);
    return socket;
  };
  const first = await open();
  await until(t, 'the key is known for asking in vain', () => begun === 1);
  // Beyond a burst they wait for up to a second, and are one decision.
  const others = await Promise.all(Array.from({ length: 70 }, open));
  await until(t, 'those of the burst have a stream', () => begun >= 49);
  for (const socket of [first, ...others]) socket.resetAndDestroy();
  const gathered = (record: LogRecord) => Number((record.event as { count?: number }).count) > 1;
  while (!(await rig.records()).some(gathered)) await after(50);
  await connect(t, rig, key, client);
  t.is((await client.listTools()).tools.length, 4);
});

test('[G23] a client of /mcp/sse that asks and never reads is cut off before it fills the memory', async (t) => {
  const text = 'x'.repeat(1024 * 1024);
  const upstream = await startScripted(t, (response, heard) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      resultFor(heard, {
        protocolVersion: '2025-06-18',
        capabilities: {},
        content: [{ type: 'text', text }],
      }),
    ),
  );
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = admission(await rig.mint({ servers: ['wiki'] }));
  const { hostname, port, host } = new URL(rig.url);
  const socket = connectSocket({ host: hostname, port: Number(port) }).on('error', () => undefined);
  t.teardown(() => socket.destroy());
  const headers = Object.entries({ host, accept: 'text/event-stream', ...key });
  socket.write(
    `GET /mcp/sse HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  );
  let heard = '';
  while (!/session=\S+\n/.test(heard)) heard += String((await once(socket, 'data'))[0]);
  socket.pause();
  const path = /data: (\S+)/.exec(heard)?.[1] ?? '';
  t.is((await rig.post(path, initialize, key)).status, 202);
  const call = rpc('tools/call', { name: 'wiki-x', arguments: {} });
  let asked = 0;
  while ((await rig.post(path, call, key)).status !== 404 && asked < 100) asked += 1;
  t.true(asked < 60, String(asked));
});

test('[G12,G23] an answer in JSON is one event of /mcp/sse, and one that can not be passed on is an error', async (t) => {
  const texts: Record<string, string> = {
    parts: `{"content":[],"big":9007199254740993,"text":"${'x'.repeat(100_000)}"}`,
    deep: `{"content":[],"deep":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
    odd: '{"content":',
  };
  const upstream = await startScripted(t, (response, heard) => {
    const { id, method, params } = JSON.parse(heard.text || '{}');
    response.writeHead(200, { 'content-type': 'application/json' });
    if (method !== 'tools/call') {
      return response.end(resultFor(heard, { protocolVersion: '2025-06-18', capabilities: {} }));
    }
    const text = `{"jsonrpc":"2.0","id":${id},"result":${texts[params.name]}}`;
    for (let at = 0; at < text.length; at += 999) response.write(text.slice(at, at + 999));
    return response.end();
  });
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = admission(await rig.mint({ servers: ['wiki'] }));
  const stream = await fetch(`${rig.url}/mcp/sse`, { headers: { ...key, accept: 'text/event-stream' } });
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let heard = '';
  const next = async (event: RegExp) => {
    while (!event.test(heard)) heard += (await reader.read()).value ?? '';
    const [found = '', data = ''] = event.exec(heard) ?? [];
    heard = heard.slice(heard.indexOf(found) + found.length);
    return data;
  };
  const path = await next(/data: (\S+)\n\n/);
  t.is((await rig.post(path, initialize, key)).status, 202);
  await next(/data: (.*)\n\n/);
  for (const [index, name] of Object.keys(texts).entries()) {
    t.is((await rig.post(path, rpc('tools/call', { name: `wiki-${name}` }, index), key)).status, 202);
    const data = await next(/data: (.*)\n\n/);
    if (name === 'parts') t.is(data, `{"jsonrpc":"2.0","id":0,"result":${texts.parts}}`);
    else t.like(JSON.parse(data), { id: index, error: { code: -32_603 } });
    if (name !== 'parts') t.regex(data, /answers with what can not be passed on/);
  }
  await reader.cancel();
  t.false(rig.lines.some((line) => line.includes('gateway.call_failed')));
});
