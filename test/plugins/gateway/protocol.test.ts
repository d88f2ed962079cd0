import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { answerEmpty, type ScriptedUpstream, startScripted } from '../../support/scripted-upstream.ts';
import { send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

const STATELESS = '2026-07-28';
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': STATELESS,
  'io.modelcontextprotocol/clientCapabilities': {},
};

interface Setup {
  readonly rig: Rig;
  readonly upstream: ScriptedUpstream;
  readonly url: string;
  /** The headers of a good request. */
  readonly good: Record<string, string>;
  readonly session: Record<string, string>;
}

async function setUp(t: ExecutionContext<unknown>, entitled = true): Promise<Setup> {
  const upstream = await startScripted(t, answerEmpty);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = await rig.mint(entitled ? { servers: ['wiki'] } : {});
  const good = { 'content-type': 'application/json', accept: MEDIA, ...admission(key) };
  const url = `${rig.url}/wiki/mcp`;
  const opened = await send(url, { headers: good, body: initialize });
  const session = { ...good, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  return { rig, upstream, url, good, session };
}

/** A request of the stateless revision with the headers that belong to it. */
function modern(method: string, params: Record<string, unknown> = {}, name?: string) {
  return {
    headers: {
      'mcp-protocol-version': STATELESS,
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    },
    body: rpc(method, { ...params, _meta: ENVELOPE }),
  };
}

test('[G4] the rules of sessions: media types, methods, sessions and revisions, each with its status', async (t) => {
  const { url, good, session, upstream } = await setUp(t);
  const list = rpc('tools/list');
  const status = async (method: string, headers: Record<string, string>, body?: unknown) =>
    (await send(url, { method, headers, ...(body !== undefined && { body }) })).status;
  t.is(await status('POST', { ...session, accept: 'application/json' }, list), 406);
  t.is(await status('GET', { ...session, accept: 'application/json' }), 406);
  t.is(await status('POST', { ...session, 'content-type': 'text/plain' }, list), 415);
  t.is(await status('POST', good, list), 400, 'no session');
  t.is(await status('GET', good), 400);
  t.is(await status('POST', { ...session, 'mcp-session-id': 'foreign' }, list), 404);
  t.is(await status('DELETE', { ...session, 'mcp-session-id': 'foreign' }), 404);
  t.is(await status('POST', { ...session, 'mcp-protocol-version': '1999-01-01' }, list), 400);
  t.is(await status('POST', { ...session, 'mcp-protocol-version': '2025-11-25' }, list), 200);
  t.is(await status('POST', { ...session, accept: '*/*' }, list), 200);
  t.is(upstream.heard.at(-1)?.headers.accept, 'application/json, text/event-stream');
  for (const method of ['PUT', 'PATCH', 'HEAD']) {
    const answer = await send(url, { method, headers: session });
    t.is(answer.status, 405, method);
    t.deepEqual(answer.headers.allow?.split(', ').sort(), ['DELETE', 'GET', 'POST']);
  }
});

test('[G4] a notification is answered 202 without a body, whatever its upstream says', async (t) => {
  const { url, session } = await setUp(t);
  const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
  for (const body of [note, { jsonrpc: '2.0', id: 3, result: {} }]) {
    const answer = await send(url, { headers: session, body });
    t.is(answer.status, 202);
    t.is(answer.text, '');
  }
});

test('a foreign Origin is refused on POST, GET and DELETE, and a foreign Host', async (t) => {
  const { url, session, upstream } = await setUp(t);
  const before = upstream.heard.length;
  for (const method of ['POST', 'GET', 'DELETE']) {
    const foreign = await send(url, { method, headers: { ...session, origin: 'http://evil.example.com' } });
    t.is(foreign.status, 403, method);
    const rebound = await send(url, { method, headers: { ...session, host: 'evil.example.com' } });
    t.true(rebound.status >= 400 && rebound.status < 500, `${method} ${rebound.status}`);
  }
  t.is(upstream.heard.length, before);
});

test('[G4] what the stateless revision repeats in headers must be what the body says', async (t) => {
  const { url, good, upstream } = await setUp(t);
  const before = upstream.heard.length;
  const call = modern('tools/call', { name: 'wiki-echo', arguments: {} }, 'wiki-echo');
  const refused = async (
    headers: Record<string, string | undefined>,
    body: object = call.body,
    code = -32_020,
  ): Promise<void> => {
    const all = Object.entries({ ...good, ...call.headers, ...headers });
    const given = Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >;
    const answer = await send(url, { headers: given, body });
    t.is(answer.status, 400, answer.text);
    t.is(answer.json().error?.code, code, answer.text);
    t.is(answer.json().id, 7);
  };
  await refused({ 'mcp-method': 'tools/list' });
  await refused({ 'mcp-method': undefined });
  await refused({ 'mcp-name': 'wiki-other' });
  await refused({ 'mcp-name': undefined });
  await refused({ 'mcp-name': '=?base64?d2lraS1lY2hv!?=' });
  await refused({ 'mcp-protocol-version': undefined });
  await refused({ 'mcp-protocol-version': '2025-11-25' });
  await refused({ 'mcp-method': 'initialize' }, rpc('initialize', {}));
  await refused({ 'mcp-method': 'tools/list', 'mcp-name': undefined }, rpc('tools/list'), -32_602);
  const odd = { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': 1 };
  await refused({}, rpc('tools/call', { name: 'wiki-echo', _meta: odd }), -32_602);
  for (const revision of ['2027-01-01', '2025-11-25']) {
    const meta = { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': revision };
    const body = rpc('tools/call', { name: 'wiki-echo', _meta: meta });
    await refused({ 'mcp-protocol-version': revision }, body, -32_022);
  }
  t.is(upstream.heard.length, before, 'none of them went up');
});

test('[G10] the header of a call goes up with the upstream’s own name, in base64 where it must', async (t) => {
  const { url, good, upstream } = await setUp(t);
  const plain = modern('tools/call', { name: 'wiki-echo' }, 'wiki-echo');
  t.is((await send(url, { headers: { ...good, ...plain.headers }, body: plain.body })).status, 200);
  t.is(upstream.heard.at(-1)?.headers['mcp-name'], 'echo');
  t.is(upstream.heard.at(-1)?.headers['mcp-method'], 'tools/call');
  const wrapped = `=?base64?${Buffer.from('wiki-größe').toString('base64')}?=`;
  const odd = modern('tools/call', { name: 'wiki-größe', arguments: { a: 1 } }, wrapped);
  const headers = { ...good, ...odd.headers, 'mcp-param-a': '1', 'mcp-secret': 'x' };
  t.is((await send(url, { headers, body: odd.body })).status, 200);
  const heard = upstream.heard.at(-1);
  t.is(heard?.headers['mcp-name'], `=?base64?${Buffer.from('größe').toString('base64')}?=`);
  t.is(heard?.headers['mcp-param-a'], '1');
  t.false('mcp-secret' in (heard?.headers ?? {}));
});

test('[G4] the stateless revision has no stream to open and no session to close', async (t) => {
  const { url, good } = await setUp(t);
  for (const method of ['GET', 'DELETE']) {
    const answer = await send(url, { method, headers: { ...good, 'mcp-protocol-version': STATELESS } });
    t.is(answer.status, 405);
    t.is(answer.headers.allow, 'POST');
  }
});

test('[G5] in the stateless revision an unentitled caller discovers a server without tools', async (t) => {
  const { url, good, upstream } = await setUp(t, false);
  const ask = async (method: string, params?: Record<string, unknown>, name?: string) => {
    const { headers, body } = modern(method, params, name);
    return send(url, { headers: { ...good, ...headers }, body });
  };
  const discovered = await ask('server/discover');
  t.is(discovered.status, 200);
  t.like(discovered.json().result, { resultType: 'complete', capabilities: { tools: {} } });
  const supported = discovered.json().result?.supportedVersions;
  t.true(Array.isArray(supported) && supported.includes(STATELESS));
  t.like((await ask('tools/list')).json().result, {
    resultType: 'complete',
    tools: [],
    cacheScope: 'private',
  });
  const call = await ask('tools/call', { name: 'wiki-echo' }, 'wiki-echo');
  t.is(call.status, 200);
  t.like(call.json().result, { resultType: 'complete', isError: true });
  t.is((await ask('resources/list')).status, 404);
  t.deepEqual(upstream.heard, []);
});
