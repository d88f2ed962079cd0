import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { startScripted } from '../../support/scripted-upstream.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

/** A rig with one server, and a session there. */
async function session(t: ExecutionContext, options: Parameters<typeof Rig.start>[1] = {}) {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, {
    ...options,
    routes: [credentialFree({ name: 'wiki', url: upstream.url })],
  });
  const key = admission(await rig.mint({ servers: ['wiki'] }));
  const opened = await rig.post('/wiki/mcp', initialize, key);
  t.is(opened.status, 200);
  await opened.text();
  return {
    rig,
    upstream,
    key,
    headers: { ...key, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' },
  };
}

test('[G23] a stream that its server closes before the first event passes, as its client comes back for the answer', async (t) => {
  const upstream = await startScripted(t, (response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': '0' }).end(),
  );
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const answer = await rig.post('/wiki/mcp', initialize, admission(await rig.mint({ servers: ['wiki'] })));
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'text/event-stream');
  t.is(await answer.text(), '');
  t.is((await rig.whenEnded('initialize')).outcome, 'ok');
});

test('[G23] a message that is nested too deeply is refused as that, with the limit, and not as something else than JSON', async (t) => {
  const { rig, headers } = await session(t);
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const body = (levels: number) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wiki-echo","arguments":{"text":"x","deep":${nested(levels)}}}}`;
  const refused = await rig.post('/wiki/mcp', body(64), headers);
  t.is(refused.status, 400);
  t.deepEqual(((await refused.json()) as any).error, {
    code: -32_600,
    message: 'Invalid Request: the message is nested deeper than 64 levels',
  });
  t.is((await rig.post('/wiki/mcp', body(40), headers)).status, 200);
  const broken = await rig.post('/wiki/mcp', '{', headers);
  t.is(((await broken.json()) as any).error.code, -32_700);
});

/** A POST of bytes. */
const postBytes = (
  rig: Rig,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
): Promise<Response> =>
  fetch(`${rig.url}/wiki/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: MEDIA, ...headers },
    body: Buffer.from(bytes),
  });

const compressions = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync } as const;
const echo = JSON.stringify(rpc('tools/call', { name: 'wiki-echo', arguments: { text: 'compressed' } }));

for (const [coding, compress] of Object.entries(compressions)) {
  test(`[G23] a request in ${coding} is read as what it holds`, async (t) => {
    const { rig, headers } = await session(t);
    const answer = await postBytes(rig, compress(echo), { ...headers, 'content-encoding': coding });
    t.is(answer.status, 200);
    t.regex(await answer.text(), /compressed/);
    const damaged = await postBytes(rig, Buffer.from(echo), { ...headers, 'content-encoding': coding });
    t.is(damaged.status, 400);
    t.regex(await damaged.text(), new RegExp(`not what its Content-Encoding ${coding} says`));
  });
}

test('[G23] another coding is 415 with those that are taken, and what unpacks to more than a body may have is 413', async (t) => {
  const { rig, headers } = await session(t, { bodyLimit: 65_536, maxHeldBytes: 65_536 });
  const other = await postBytes(rig, Buffer.from(echo), { ...headers, 'content-encoding': 'zstd' });
  t.is(other.status, 415);
  t.is(other.headers.get('accept-encoding'), 'gzip, deflate, br');
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, 0x20));
  t.true(bomb.length < 65_536);
  const refused = await postBytes(rig, bomb, { ...headers, 'content-encoding': 'gzip' });
  t.is(refused.status, 413);
  const stranger = await postBytes(rig, bomb, { 'content-encoding': 'gzip' });
  t.is(stranger.status, 401, 'who has no key has nothing unpacked');
});

test('[G12] the aggregate refuses tasks before anything is asked or charged', async (t) => {
  const { rig, upstream, key } = await session(t);
  const opened = await rig.post('/mcp/', initialize, key);
  const aggregate = { ...key, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await opened.text();
  const asked = upstream.asked.length;
  const call = { name: 'wiki-echo', arguments: { text: 'x' }, task: { ttl: 1_000 } };
  const refused: any = await (await rig.post('/mcp/', rpc('tools/call', call), aggregate)).json();
  t.is(refused.error.code, -32_602);
  t.regex(refused.error.message, /no tasks at \/mcp\/\. Call the server at \/<server>\/mcp/);
  const none: any = await (await rig.post('/mcp/', rpc('tasks/get', { taskId: '1' }), aggregate)).json();
  t.is(none.error.code, -32_601);
  t.is(upstream.asked.length, asked);
  const made = (await rig.records()).filter(({ event }) => (event as any).method === 'tools/call');
  t.deepEqual(made, [], 'nothing was decided about it');
});

const PAGE = 'https://app.example.net';

test('[G25] no page of another origin may call, unless its origin is configured', async (t) => {
  const { rig, headers } = await session(t);
  const ask = (method: string, more: Readonly<Record<string, string>>) =>
    fetch(`${rig.url}/wiki/mcp`, { method, headers: { origin: PAGE, ...more } });
  const preflight = await ask('OPTIONS', { 'access-control-request-method': 'POST' });
  t.true(preflight.status >= 400);
  t.is(preflight.headers.get('access-control-allow-origin'), null);
  t.is((await ask('DELETE', headers)).status, 403);
});

test('[G25] a page of a configured origin passes its preflight request and calls; no other page, path or credential does', async (t) => {
  const { rig, headers } = await session(t, { corsOrigins: [PAGE] });
  const preflight = (path: string, origin: string) =>
    fetch(`${rig.url}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-gateway-api-key,mcp-session-id',
        'sec-fetch-site': 'cross-site',
      },
    });
  for (const path of ['/wiki/mcp', '/mcp/', '/.well-known/oauth-protected-resource/wiki/mcp']) {
    const allowed = await preflight(path, PAGE);
    t.is(allowed.status, 204, path);
    t.is(allowed.headers.get('access-control-allow-origin'), PAGE);
    t.is(allowed.headers.get('access-control-allow-credentials'), null);
    t.regex(allowed.headers.get('access-control-allow-headers') ?? '', /x-gateway-api-key.*mcp-session-id/);
    t.is(allowed.headers.get('vary'), 'origin');
  }
  for (const origin of ['https://app.example.net:8443', 'https://app.example.net.evil.example', 'null']) {
    const refused = await preflight('/wiki/mcp', origin);
    t.is(refused.status, 403, origin);
    t.is(refused.headers.get('access-control-allow-origin'), null);
  }
  const page = { origin: PAGE, 'sec-fetch-site': 'cross-site' };
  const answer = await rig.post('/wiki/mcp', rpc('tools/list'), { ...headers, ...page });
  t.is(answer.status, 200);
  t.is(answer.headers.get('access-control-allow-origin'), PAGE);
  t.regex(answer.headers.get('access-control-expose-headers') ?? '', /mcp-session-id/);
  const unknown = await rig.post('/wiki/mcp', rpc('tools/list'), page);
  t.is(unknown.status, 401, 'it needs a key like anybody');
  t.is(unknown.headers.get('access-control-allow-origin'), PAGE);
  const other = await rig.post('/wiki/mcp', rpc('tools/list'), {
    ...headers,
    origin: 'https://evil.example',
  });
  t.is(other.status, 403);
  const admin = await rig.post('/key/generate', {}, { authorization: `Bearer ${rig.masterKey}`, ...page });
  t.is(admin.status, 403, 'the rule of the host stays for all other paths');
  t.is((await preflight('/key/generate', PAGE)).headers.get('access-control-allow-origin'), null);
});

/** An identity server's resource. */
async function resource(
  t: ExecutionContext,
  servers: readonly string[],
  scopes: readonly string[],
): Promise<string> {
  const server = createServer((request, response) => {
    const isDocument = request.url?.startsWith('/.well-known/oauth-protected-resource');
    response.writeHead(isDocument ? 200 : 401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ resource: 'x', authorization_servers: servers, scopes_supported: scopes }));
  });
  await listen(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test('[G13] the document is found at every place where clients look for it', async (t) => {
  const login = 'https://login.example.net/realms/one';
  const rig = await Rig.start(t, {
    routes: [
      relay({ name: 'memory', url: await resource(t, [login], ['mcp']) }),
      relay({ name: 'cluster', url: await resource(t, [login], ['mcp-cluster', 'groups']) }),
      credentialFree({ name: 'wiki', url: 'http://127.0.0.1:9/mcp' }),
    ],
  });
  const read = async (path: string): Promise<{ status: number; body: any }> => {
    const answer = await fetch(`${rig.url}${path}`);
    return { status: answer.status, body: await answer.json() };
  };
  const known = await read('/.well-known/oauth-protected-resource/memory/mcp');
  t.is(known.body.resource, `${rig.url}/memory/mcp`);
  t.deepEqual(await read('/memory/mcp/.well-known/oauth-protected-resource'), known);
  t.is((await read('/wiki/mcp/.well-known/oauth-protected-resource')).status, 404);
  t.is((await read('/none/mcp/.well-known/oauth-protected-resource')).status, 404);
  t.deepEqual(await read('/.well-known/oauth-protected-resource'), {
    status: 200,
    body: {
      resource: rig.url,
      authorization_servers: [login],
      scopes_supported: ['mcp-cluster', 'groups', 'mcp'],
    },
  });
});

test('[G13] servers with different authorization servers have no document together, as one must not choose for another', async (t) => {
  const rig = await Rig.start(t, {
    routes: [
      relay({ name: 'memory', url: await resource(t, ['https://login.example.net'], []) }),
      relay({ name: 'notes', url: await resource(t, ['https://evil.example'], []) }),
    ],
  });
  const answer = await fetch(`${rig.url}/.well-known/oauth-protected-resource`);
  t.is(answer.status, 404);
  t.regex(await answer.text(), /each has its own document at/);
});
