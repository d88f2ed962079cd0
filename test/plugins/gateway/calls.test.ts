import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

test('[G4,G10] the official client connects, lists prefixed tools and calls one', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'repo_wiki', url: upstream.url })] });
  const client = await rig.connect(t, 'repo_wiki', await rig.mint({ servers: ['repo_wiki'] }));
  const { tools } = await client.listTools();
  t.deepEqual(tools.map(({ name }) => name).sort(), ['repo_wiki-echo', 'repo_wiki-fail']);
  const answer = await client.callTool({ name: 'repo_wiki-echo', arguments: { text: 'hello' } });
  t.deepEqual(answer.content, [{ type: 'text', text: 'hello' }]);
  t.false(upstream.asked.some(({ headers }) => 'x-gateway-api-key' in headers));
});

test('[G3] without the prefix a key admits nobody, whatever Authorization says', async (t) => {
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: 'http://127.0.0.1:9/mcp' })],
  });
  const key = await rig.mint({ servers: ['repo_wiki'] });
  const answer = await rig.post('/repo_wiki/mcp', initialize, {
    'x-gateway-api-key': key,
    authorization: `Bearer ${key}`,
  });
  t.is(answer.status, 401);
  t.deepEqual(await answer.json(), {
    detail: 'Authentication Error, Malformed API Key passed in. Ensure Key has `Bearer ` prefix.',
  });
});

test('[G5,G6] a key without the route connects, sees no tools, and is refused by name, all without the upstream', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'repo_wiki', url: upstream.url })] });
  const headers = admission(await rig.mint({}));
  const first = await rig.post('/repo_wiki/mcp', initialize, headers);
  t.is(first.status, 200);
  const session = { ...headers, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  const list = await rig.post('/repo_wiki/mcp', rpc('tools/list'), session);
  t.deepEqual(await list.json(), { jsonrpc: '2.0', id: 7, result: { tools: [] } });
  const call = await rig.post('/repo_wiki/mcp', rpc('tools/call', { name: 'repo_wiki-echo' }), session);
  t.is(call.status, 200);
  t.deepEqual(await call.json(), {
    jsonrpc: '2.0',
    id: 7,
    result: {
      content: [{ type: 'text', text: 'Error: User not allowed to call this tool.' }],
      isError: true,
    },
  });
  t.deepEqual(upstream.asked, []);
  const records = (await rig.records()).filter(({ event }) => event.type === 'CALL');
  t.deepEqual(
    records.map(({ effects }) => effects[0]?.params),
    [1, 2, 3].map(() => ({ rule: 'not_entitled', revision: 1, alias: 'test' })),
  );
});

test('[G16] only calls of tools use up the limit, and over it a tool result says when to come back', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'repo_wiki', url: upstream.url })] });
  const client = await rig.connect(t, 'repo_wiki', await rig.mint({ servers: ['repo_wiki'], rpmLimit: 1 }));
  await client.listTools();
  const call = { name: 'repo_wiki-echo', arguments: { text: 'hello' } };
  t.falsy((await client.callTool(call)).isError);
  const second = await client.callTool(call);
  t.true(second.isError);
  t.regex(JSON.stringify(second.content), /Rate limit of this key exceeded\. Try again in \d+ s\./);
});

test('[C2] only an admitted call that writes nothing is batched: refusals, changes of keys and calls that may write are not', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'repo_wiki', url: upstream.url }),
      credentialFree({ name: 'columnar_rw', url: upstream.url, writes: false }), // it may write, whatever is said
      credentialFree({ name: 'tickets', url: upstream.url, writes: true }),
      credentialFree({ name: 'other', url: upstream.url }),
    ],
  });
  const headers = admission(await rig.mint({ servers: ['repo_wiki', 'columnar_rw', 'tickets'] }));
  const isBatched = async (route: string) => {
    t.is((await rig.post(`/${route}/mcp`, initialize, headers)).status, 200, route);
    const calls = (await rig.records()).filter(({ event }) => event.type === 'CALL');
    return calls.at(-1)?.batched === true;
  };
  t.true(await isBatched('repo_wiki'), 'admitted');
  t.false(await isBatched('columnar_rw'), 'admitted, and may write into the database');
  t.false(await isBatched('tickets'), 'admitted, and declared as one that may write');
  t.false(await isBatched('other'), 'refused');
  const records = await rig.records();
  t.true(records.some(({ event }) => event.type === 'KEY_CREATED'));
  const batched = records.filter((record) => record.batched === true).map(({ event }) => event.type);
  t.deepEqual([...new Set(batched)].sort(), ['CALL', 'CALL_ENDED']);
});
