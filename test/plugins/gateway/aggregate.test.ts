import { Client as NewClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test from 'ava';
import { credentialFree, overwrite, relay } from '../../../src/plugins/gateway/index.ts';
import { startSessionServer, startUpstream } from '../../support/mcp-upstream.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { startStateless } from '../../support/stateless-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';
import { talker } from './talkers.ts';

const UNAVAILABLE = 'holdfast/unavailable';

const namesOf = async (client: Client): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name);
const echo = (server: string, text = 'hello') => ({ name: `${server}-echo`, arguments: { text } });

test('[G12,G10] the official client sees the tools of all servers of its key at /mcp/, and a call finds its server', async (t) => {
  const [wiki, docs, other] = [await startUpstream(t), await startUpstream(t, true), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
      credentialFree({ name: 'other', url: other.url }),
    ],
  });
  const key = await rig.mint({ servers: ['wiki', 'docs'] });
  const client = await rig.connectTo(t, '/mcp/', admission(key));
  t.deepEqual(await namesOf(client), ['docs-echo', 'docs-fail', 'wiki-echo', 'wiki-fail']);
  for (const server of ['wiki', 'docs']) {
    t.deepEqual((await client.callTool(echo(server, server))).content, [{ type: 'text', text: server }]);
  }
  t.true((await client.callTool({ name: 'docs-fail' })).isError);
  const refused = await client.callTool(echo('other'));
  t.deepEqual(refused, {
    content: [{ type: 'text', text: 'Error: User not allowed to call this tool.' }],
    isError: true,
  });
  t.deepEqual(other.asked, []);
  t.false([...wiki.asked, ...docs.asked].some(({ headers }) => 'x-gateway-api-key' in headers));
});

test('[G12,C2] each request to /mcp/ is two records: what was decided about which servers, and how it ended', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url, costs: { echo: 2 } }),
      credentialFree({ name: 'other', url: wiki.url }),
    ],
  });
  const headers = admission(await rig.mint({ servers: ['wiki', 'docs'] }));
  const first = await rig.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await (await rig.post('/mcp/', rpc('tools/list'), session)).text();
  await (await rig.post('/mcp/', rpc('tools/call', echo('docs')), session)).text();
  const records = await rig.records();
  const calls = records.filter(({ event }) => event.type === 'CALL');
  t.deepEqual(
    calls.map(({ event }) => [event.method, event.routes, event.tool, event.cost]),
    [
      ['initialize', ['docs', 'other', 'wiki'], undefined, undefined],
      ['tools/list', ['docs', 'other', 'wiki'], undefined, undefined],
      ['tools/call', ['docs'], 'docs-echo', 2],
    ],
  );
  t.deepEqual(
    calls.map(({ effects }) => (effects[0]?.params as { routes?: string[] } | undefined)?.routes),
    [['docs', 'wiki'], ['docs', 'wiki'], ['docs']],
  );
  t.deepEqual(
    records.filter(({ event }) => event.type === 'CALL_ENDED').map(({ event }) => event.outcome),
    ['ok', 'ok', 'ok'],
  );
});

test('[G12] servers that are down, hang or answer nonsense are named, and the others are there', async (t) => {
  const wiki = await startUpstream(t);
  const hanging = await startScripted(t, () => undefined);
  const broken = await startScripted(t, (response) =>
    response.setHeader('content-type', 'text/html').end('<html>'),
  );
  const rig = await Rig.start(t, {
    aggregateDeadlineMs: 6_000,
    routes: [
      credentialFree({ name: 'down', url: 'http://127.0.0.1:9/mcp' }),
      credentialFree({ name: 'hanging', url: hanging.url }),
      credentialFree({ name: 'broken', url: broken.url }),
      overwrite({ name: 'nowhere' }),
      credentialFree({ name: 'wiki', url: wiki.url }),
    ],
  });
  const key = await rig.mint({ servers: ['down', 'hanging', 'broken', 'nowhere', 'wiki'] });
  const client = await rig.connectTo(t, '/mcp/', admission(key));
  const { tools, _meta } = await client.listTools();
  t.deepEqual(
    tools.map(({ name }) => name),
    ['wiki-echo', 'wiki-fail'],
  );
  t.deepEqual(_meta?.[UNAVAILABLE], [
    { server: 'nowhere', reason: 'is not configured: set HOLDFAST_MCP_NOWHERE_URL' },
    { server: 'broken', reason: 'answers with something that is neither JSON nor an event stream' },
    { server: 'down', reason: 'cannot be reached' },
    { server: 'hanging', reason: 'does not answer in time' },
  ]);
  t.deepEqual((await client.callTool(echo('wiki'))).content, [{ type: 'text', text: 'hello' }]);
});

test('[G12] x-mcp-servers selects; what matches nothing selects nothing, and is named', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const key = admission(await rig.mint({ servers: ['wiki', 'docs'] }));
  const some = await rig.connectTo(t, '/mcp/', { ...key, 'x-mcp-servers': 'docs, wkii' });
  const { tools, _meta } = await some.listTools();
  t.deepEqual(
    tools.map(({ name }) => name),
    ['docs-echo', 'docs-fail'],
  );
  t.deepEqual(_meta, { 'holdfast/unknown': ['wkii'] });
  t.true((await some.callTool(echo('wiki'))).isError);
  t.deepEqual(wiki.asked, []);
  docs.asked.length = 0;
  for (const header of ['nothing', '', ',']) {
    const none = await rig.connectTo(t, '/mcp/', { ...key, 'x-mcp-servers': header });
    t.deepEqual(await namesOf(none), []);
    t.true((await none.callTool(echo('docs'))).isError);
  }
  t.deepEqual([wiki.asked, docs.asked], [[], []]);
});

test('[G18] an upstream that restarted is initialised again behind the session, with what the client had said', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const client = await rig.connectTo(t, '/mcp/', admission(await rig.mint({ servers: ['wiki', 'docs'] })));
  wiki.forget();
  const answers = await Promise.all([1, 2, 3].map((n) => client.callTool(echo('wiki', String(n)))));
  t.deepEqual(
    answers.map(({ content }) => content),
    ['1', '2', '3'].map((text) => [{ type: 'text', text }]),
  );
  t.deepEqual((await namesOf(client)).length, 4);
  const sessions = new Set(wiki.asked.map(({ headers }) => headers['mcp-session-id']));
  t.is(sessions.size, 3, 'no session while initialising, the one before, one after');
});

test('[G18] an upstream that answers 400 to a session it has forgotten is initialised again, and another 400 is passed on', async (t) => {
  const wiki = await startSessionServer(t, { serve: () => talker('wiki', [], []), unknown: 400 });
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: wiki.url })] });
  const headers = admission(await rig.mint({ servers: ['wiki'] }));
  const client = await rig.connectTo(t, '/mcp/', headers);
  wiki.forget();
  t.deepEqual(await namesOf(client), ['wiki-ask', 'wiki-wait']);
  const strict = await startScripted(t, (response, heard) => {
    const { method } = JSON.parse(heard.text || '{}') as { method?: string };
    response.setHeader('mcp-session-id', 'one').setHeader('content-type', 'application/json');
    if (method === 'tools/call') response.writeHead(400);
    response.end(resultFor(heard, { protocolVersion: '2025-06-18', capabilities: {} }));
  });
  const other = await Rig.start(t, { routes: [credentialFree({ name: 'strict', url: strict.url })] });
  const key = admission(await other.mint({ servers: ['strict'] }));
  const first = await other.post('/mcp/', initialize, key);
  const session = { ...key, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  t.is((await other.post('/mcp/', rpc('tools/call', echo('strict')), session)).status, 400);
  t.is(strict.heard.filter(({ text }) => text.includes('tools/call')).length, 1);
});

test('[G18] a session outlives the gateway: the next call to another process on the same folder succeeds', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const options = {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  };
  const before = await Rig.start(t, options);
  const headers = admission(await before.mint({ servers: ['wiki', 'docs'] }));
  const first = await before.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await before.runtime.stop('test');
  wiki.forget();
  const after = await Rig.start(t, options, before.dataDir);
  for (const server of ['wiki', 'docs']) {
    const answer = await after.post('/mcp/', rpc('tools/call', echo(server)), session);
    t.is(answer.status, 200);
    t.regex(await answer.text(), /"text":"hello"/);
  }
  const foreign = admission(await after.mint({ servers: ['wiki'] }));
  const stolen = await after.post('/mcp/', rpc('tools/list'), { ...session, ...foreign });
  t.is(stolen.status, 404, 'a session belongs to its key');
});

test('[G12,G8] relay routes take part only for callers with a token of their own, which goes nowhere else', async (t) => {
  const [wiki, memory] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'wiki', url: wiki.url }), relay({ name: 'memory', url: memory.url })],
  });
  const value = await rig.mint({ servers: ['wiki', 'memory'] });
  const key = admission(value);
  const without = await rig.connectTo(t, '/mcp/', key);
  const { tools, _meta } = await without.listTools();
  t.deepEqual(
    tools.map(({ name }) => name),
    ['wiki-echo', 'wiki-fail'],
  );
  t.like(_meta?.[UNAVAILABLE], [{ server: 'memory' }]);
  const refused = await without.callTool(echo('memory'));
  t.true(refused.isError);
  t.regex(JSON.stringify(refused.content), /wants your own access token/);
  // A key where the token belongs is no token, and never reaches an upstream.
  const misplaced = await rig.connectTo(t, '/mcp/', { ...key, authorization: `Bearer ${value}` });
  t.is((await namesOf(misplaced)).length, 2);
  t.deepEqual(memory.asked, []);
  const withToken = await rig.connectTo(t, '/mcp/', { ...key, authorization: 'Bearer my-token' });
  t.is((await namesOf(withToken)).length, 4);
  t.deepEqual((await withToken.callTool(echo('memory'))).content, [{ type: 'text', text: 'hello' }]);
  t.deepEqual(
    new Set(memory.asked.map(({ headers }) => headers.authorization)),
    new Set(['Bearer my-token']),
  );
  t.deepEqual(new Set(wiki.asked.map(({ headers }) => headers.authorization)), new Set([undefined]));
});

test('[G5,G16] scopes, tool lists and limits of a key hold on /mcp/ as on the routes', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const terms = { servers: ['wiki', 'docs'], tools: ['wiki-echo', 'docs-fail'], rpmLimit: 1 };
  const client = await rig.connectTo(t, '/mcp/', admission(await rig.mint(terms)));
  t.deepEqual(await namesOf(client), ['docs-fail', 'wiki-echo']);
  t.regex(JSON.stringify(await client.callTool(echo('docs'))), /not allowed to call this tool/);
  t.falsy((await client.callTool(echo('wiki'))).isError);
  t.regex(JSON.stringify(await client.callTool(echo('wiki'))), /Rate limit of this key exceeded/);
  const nobody = await rig.connectTo(t, '/mcp/', admission(await rig.mint({})));
  t.deepEqual(await namesOf(nobody), []);
  const stranger = await rig.post('/mcp/', initialize, { 'x-gateway-api-key': 'Bearer sk-unknown' });
  t.is(stranger.status, 401);
});

test('[G12] DELETE ends the session of every upstream, and its id is unknown from then on', async (t) => {
  const [wiki, docs] = [await startUpstream(t), await startUpstream(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const headers = admission(await rig.mint({ servers: ['wiki', 'docs'] }));
  const first = await rig.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  const ended = await fetch(`${rig.url}/mcp/`, { method: 'DELETE', headers: session });
  t.is(ended.status, 200);
  for (const { asked } of [wiki, docs]) t.is(asked.at(-1)?.method, 'DELETE');
  const id = session['mcp-session-id'];
  for (const spelling of [id, `${id}=`, `${id.slice(0, 5)}*${id.slice(5)}`]) {
    const again = { ...session, 'mcp-session-id': spelling };
    t.is((await rig.post('/mcp/', rpc('tools/list'), again)).status, 404);
  }
});

test('[G12,G18] a client of revision 2026-07-28 needs no session at /mcp/, also for servers that know nothing else', async (t) => {
  const [wiki, atlas, other] = [await startUpstream(t), await startStateless(t), await startStateless(t)];
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'atlas', url: atlas.url }),
      credentialFree({ name: 'other', url: other.url }),
      credentialFree({ name: 'down', url: 'http://127.0.0.1:9/mcp' }),
    ],
  });
  const requestInit = { headers: admission(await rig.mint({ servers: ['wiki', 'atlas', 'down'] })) };
  for (const mode of ['auto', { pin: '2026-07-28' }] as const) {
    const client = new NewClient({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${rig.url}/mcp/`), { requestInit }));
    t.teardown(() => client.close());
    t.is(client.getNegotiatedProtocolVersion(), '2026-07-28');
    const { tools, _meta } = await client.listTools();
    t.deepEqual(
      tools.map(({ name }) => name),
      ['atlas-where', 'wiki-echo', 'wiki-fail'],
    );
    t.deepEqual(_meta?.[UNAVAILABLE], [{ server: 'down', reason: 'cannot be reached' }]);
    const where = await client.callTool({ name: 'atlas-where', arguments: { region: 'eu' } });
    t.like(where.content[0], { text: 'eu' });
    wiki.forget();
    t.like((await client.callTool(echo('wiki'))).content[0], { text: 'hello' });
    t.true((await client.callTool({ name: 'other-where', arguments: { region: 'eu' } })).isError);
  }
  t.deepEqual(other.asked, []);
  t.false(atlas.asked.some(({ headers }) => 'mcp-session-id' in headers));
});

test('[G18] ids of sessions that would not fit into a header leave some upstreams out, which join at their first use', async (t) => {
  const names = Array.from({ length: 9 }, (_, n) => `server_${n}`);
  const routes = await Promise.all(
    names.map(async (name) => {
      const upstream = await startScripted(t, (response, heard) => {
        const { method } = JSON.parse(heard.text || '{}') as { method?: string };
        if (method === 'initialize') response.setHeader('mcp-session-id', name.padEnd(1_000, '-'));
        const result =
          method === 'initialize' ? { protocolVersion: '2025-06-18', capabilities: {} } : { content: [] };
        response.setHeader('content-type', 'application/json').end(resultFor(heard, result));
      });
      return credentialFree({ name, url: upstream.url });
    }),
  );
  const rig = await Rig.start(t, { routes });
  const headers = admission(await rig.mint({ servers: names }));
  const first = await rig.post('/mcp/', initialize, headers);
  const id = first.headers.get('mcp-session-id') ?? '';
  t.true(id.length > 6_000 && id.length <= 8_192, String(id.length));
  for (const name of names) {
    const answer = await rig.post('/mcp/', rpc('tools/call', echo(name)), {
      ...headers,
      'mcp-session-id': id,
    });
    t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 7, result: { content: [] } }, name);
  }
});

test('[G12,G18] a call that may have run is never made again', async (t) => {
  const cutting = await startScripted(t, (response, heard) => {
    const { method } = JSON.parse(heard.text || '{}') as { method?: string };
    if (method === 'tools/call') return response.destroy();
    response.setHeader('mcp-session-id', 'one').setHeader('content-type', 'application/json');
    return response.end(resultFor(heard, { protocolVersion: '2025-06-18', capabilities: {} }));
  });
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: cutting.url })] });
  const headers = admission(await rig.mint({ servers: ['wiki'] }));
  const first = await rig.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  const answer = await rig.post('/mcp/', rpc('tools/call', echo('wiki')), session);
  t.is(answer.status, 502);
  t.is(cutting.heard.filter(({ text }) => text.includes('tools/call')).length, 1);
});
