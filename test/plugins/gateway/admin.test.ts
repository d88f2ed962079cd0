import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { credentialFree, overwrite } from '../../../src/plugins/gateway/index.ts';
import { keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { nowhere, routes } from './admin-routes.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

test('[G14] a key is generated with all its fields, and reads about itself', async (t) => {
  const rig = await Rig.start(t, { routes });
  const made = await rig.admin('POST', '/key/generate', {
    key_alias: 'laptop',
    max_parallel_requests: 20,
    max_streams: 5,
    user_id: 'ann@example.net',
    object_permission: { mcp_servers: ['memory', 'repo_wiki'], mcp_tools: ['memory-find'] },
    rpm_limit: 30,
    max_budget: 2.5,
    duration: '30d',
  });
  t.is(made.status, 200);
  const { key, key_id, created_at, expires, ...fields } = made.body;
  t.regex(key, /^sk-[\w-]{43}$/);
  t.is(Date.parse(expires) - Date.parse(created_at), 30 * 86_400_000);
  t.deepEqual(fields, {
    key_alias: 'laptop',
    user_id: 'ann@example.net',
    object_permission: { mcp_servers: ['memory', 'repo_wiki'], mcp_tools: ['memory-find'] },
    rpm_limit: 30,
    max_budget: 2.5,
    max_parallel_requests: 20,
    max_streams: 5,
    allowed_routes: [],
    blocked: false,
    budget_duration: null,
    mcp_rpm_limits: {},
    metadata: {},
    revision: 1,
  });
  const { status, body } = await rig.rest('GET', '/key/info', { authorization: `Bearer ${key}` });
  t.is(status, 200);
  t.is(body.key, key_id);
  t.like(body.info, {
    key_alias: 'laptop',
    user_id: 'ann@example.net',
    spend: 0,
    status: 'active',
    max_budget: 2.5,
  });
  t.deepEqual(body.info.object_permission.mcp_server_names, ['memory', 'repo_wiki']);
  t.true(body.info.object_permission.mcp_servers.every((id: string) => /^srv_[0-9a-f]{16}$/.test(id)));
  t.false(JSON.stringify(body).includes(key));
});

test('[G14] each change of a key through the REST paths records which master key made it, by its fingerprint', async (t) => {
  const rig = await Rig.start(t, { routes });
  const { body } = await rig.admin('POST', '/key/generate', { key_alias: 'ci', by: undefined });
  await rig.admin('POST', '/key/update', { key: body.key_id, rpm_limit: 5 });
  await rig.admin('POST', '/key/rotate', { key: body.key_id });
  await rig.admin('POST', '/key/delete', { key: body.key_id });
  const changes = (await rig.records()).filter(({ event }) => event.type.startsWith('KEY_'));
  t.deepEqual(
    changes.map(({ event }) => [event.type, event.by]),
    ['KEY_CREATED', 'KEY_UPDATED', 'KEY_ROTATED', 'KEY_REVOKED'].map((type) => [
      type,
      `master key ${keyId(rig.masterKey)}`,
    ]),
  );
  t.deepEqual(await rig.traces(rig.masterKey), []);
  const claimed = await rig.admin('POST', '/key/generate', { key_alias: 'other', by: 'somebody else' });
  t.is(claimed.status, 400, 'nobody chooses the name that is recorded');
});

test('[G14] a key of a given value is the same key in every process, and is taken once', async (t) => {
  const rig = await Rig.start(t, { routes });
  const value = 'sk-the-same-in-both-replicas';
  const first = await rig.admin('POST', '/key/generate', { key: value });
  t.is(first.body.key, value);
  const other = await Rig.start(t, { routes });
  t.is((await other.admin('POST', '/key/generate', { key: value })).body.key_id, first.body.key_id);
  const again = await rig.admin('POST', '/key/generate', { key: value });
  t.is(again.status, 409);
  t.false(JSON.stringify(again.body).includes(value));
  for (const refused of ['sk-too-short', rig.masterKey, first.body.key_id]) {
    const { status, body } = await rig.admin('POST', '/key/generate', { key: refused });
    t.is(status, 400);
    t.is(body.error.param, 'key');
    t.false(JSON.stringify(body).includes(refused));
  }
});

test('[G14] an alias belongs to one key for as long as that is good', async (t) => {
  const rig = await Rig.start(t, { routes });
  const make = (fields: object = {}) =>
    rig.admin('POST', '/key/generate', { key_alias: 'laptop', ...fields });
  const racing = await Promise.all([make(), make(), make()]);
  t.deepEqual(racing.map(({ status }) => status).sort(), [200, 409, 409]);
  const { key, key_id } = racing.find(({ status }) => status === 200)!.body;
  for (const { body } of [...racing.filter(({ status }) => status === 409), await make()]) {
    t.like(body.error, { type: 'conflict_error', param: 'key_alias', code: '409' });
    t.regex(body.error.message, new RegExp(`alias laptop is taken by the key ${key_id}`));
  }
  t.is((await rig.admin('POST', '/key/update', { key, key_alias: 'laptop', rpm_limit: 3 })).status, 200);
  const other = (await make({ key_alias: 'desk' })).body;
  t.is((await rig.admin('POST', '/key/update', { key: other.key, key_alias: 'laptop' })).status, 409);
  t.is((await rig.admin('POST', '/key/update', { key, key_alias: 'old laptop' })).status, 200);
  t.is((await make()).status, 200, 'it was given up');
  await rig.admin('POST', '/key/delete', { key_aliases: ['laptop'] });
  await rig.mint({ alias: 'laptop', expiresAt: Date.now() - 1 });
  const next = await make();
  t.is(next.status, 200, 'one key was revoked, the other has expired');
  t.deepEqual((await rig.admin('POST', '/key/delete', { key_aliases: ['laptop'] })).body, {
    deleted_keys: [next.body.key_id],
  });
  const late = await rig.mint({ alias: 'van', expiresAt: Date.now() - 1 });
  t.is((await make({ key_alias: 'van' })).status, 200);
  for (const again of [{ duration: '1h' }, { duration: null }]) {
    const refused = await rig.admin('POST', '/key/update', { key: late, ...again });
    t.is(refused.status, 409, 'it would be good again under a name that is taken');
  }
  const renamed = { key: late, duration: '1h', key_alias: 'old van' };
  t.is((await rig.admin('POST', '/key/update', renamed)).status, 200);
  const value = 'a-value-of-our-own-choice';
  t.is((await make({ key_alias: `key-${keyId(value).slice(2, 10)}` })).status, 200);
  t.is((await make({ key_alias: undefined, key: value })).status, 409, 'nor does one that is given');
});

test('[G14] aliases and owners that look the same are the same', async (t) => {
  const rig = await Rig.start(t, { routes });
  const make = (key_alias: string, user_id = 'ann') =>
    rig.admin('POST', '/key/generate', { key_alias, user_id });
  const made = await make(' Caf\u00e9  de\u00a0la gare ', '  ann ');
  t.like(made.body, { key_alias: 'Caf\u00e9 de la gare', user_id: 'ann' });
  for (const same of ['Cafe\u0301 de la gare', '\tCaf\u00e9 de la\u2003gare', made.body.key_alias]) {
    t.is((await make(same)).status, 409, JSON.stringify(same));
    const list = await rig.admin('GET', `/key/list?key_alias=${encodeURIComponent(same)}&user_id=%20ann`);
    t.is(list.body.total_count, 1, JSON.stringify(same));
  }
  for (const hidden of ['a\u200bb', 'a\u3164b', 'a\ufe0fb', ' \u00a0 ']) {
    t.is((await make(hidden)).body.error?.param, 'key_alias', JSON.stringify(hidden));
  }
  await rig.mint({ alias: 'Zu\u0308rich ' }); // as a log from before may have it
  t.is((await make('Z\u00fcrich')).status, 409);
  const gone = await rig.admin('POST', '/key/delete', {
    key_aliases: ['Z\u00fcrich', 'Cafe\u0301 de la gare'],
  });
  t.is(gone.body.deleted_keys.length, 2);
});

test('[G27] what a request has wrong is refused by the name of its field', async (t) => {
  const rig = await Rig.start(t, { routes });
  const wrong: [object, string, RegExp][] = [
    [{ object_permission: { vector_stores: [] } }, 'object_permission.vector_stores', /no such field/],
    [
      { object_permission: { mcp_servers: ['repo-wiki'] } },
      'object_permission.mcp_servers.0',
      /write repo_wiki/,
    ],
    [
      { object_permission: { mcp_servers: ['memory', 'maps'] } },
      'object_permission.mcp_servers.1',
      /maps is no server here; there are .*memory/,
    ],
    [
      { object_permission: { mcp_servers: ['memory'], mcp_tools: ['find'] } },
      'object_permission.mcp_tools.0',
      /<server>-<tool>/,
    ],
    [
      { object_permission: { mcp_servers: ['memory'], mcp_tools: ['cluster-get'] } },
      'object_permission.mcp_tools.0',
      /this key's servers/,
    ],
    [{ rpm_limit: 0 }, 'rpm_limit', /./],
    [{ rpm_limit: 1.5 }, 'rpm_limit', /./],
    [{ max_budget: -1 }, 'max_budget', /./],
    [{ max_budget: '1' }, 'max_budget', /./],
    [{ key_alias: 'sk-abcdefghijklmnopqrst' }, 'key_alias', /looks like a key/],
    [{ duration: '30 days' }, 'duration', /30d/],
    [{ duration: '0s' }, 'duration', /revoke/],
    [{ expires: '2020-01-01T00:00:00Z' }, 'expires', /past/],
    [{ duration: '1h', expires: '2099-01-01T00:00:00Z' }, 'expires', /either/],
    [{ allowed_routes: ['everything'] }, 'allowed_routes.0', /./],
  ];
  for (const [body, field, text] of wrong) {
    const answer = await rig.admin('POST', '/key/generate', body);
    t.is(answer.status, 400, field);
    t.is(answer.body.error.param, field);
    t.is(answer.body.error.code, '400');
    t.regex(answer.body.error.message, text);
  }
  t.deepEqual((await rig.admin('GET', '/key/list')).body.keys, []);
  const notJson = await rig.rest(
    'POST',
    '/key/generate',
    { authorization: `Bearer ${rig.masterKey}` },
    '{"rpm',
  );
  t.is(notJson.status, 400);
  t.is(notJson.body.error.type, 'bad_request_error');
});

test('[G15] the servers are listed with oauth_passthrough for memory and cluster alone', async (t) => {
  const rig = await Rig.start(t, {
    routes: [...routes, overwrite({ name: 'web_search', url: `${nowhere}?apiKey=s3cret-in-query` })],
  });
  const { body } = await rig.admin('GET', '/v1/mcp/server');
  t.deepEqual(
    body.map(({ server_name, oauth_passthrough }: any) => [server_name, oauth_passthrough]).sort(),
    [
      ['cluster', true],
      ['columnar_ro', false],
      ['memory', true],
      ['repo_wiki', false],
      ['web_search', false],
    ],
  );
  t.false(JSON.stringify(body).includes('s3cret'));
});

test('[G14,G24] an update, a rotation and a revocation count at once, in sessions that are open', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'repo_wiki', url: upstream.url })] });
  const { body: made } = await rig.admin('POST', '/key/generate', { key_alias: 'a' });
  const client = await rig.connect(t, 'repo_wiki', made.key);
  const call = { name: 'repo_wiki-echo', arguments: { text: 'hello' } };
  const tools = async () => (await client.listTools()).tools.map(({ name }) => name).sort();
  t.deepEqual(await tools(), []);
  await client.close();

  t.is(
    (
      await rig.admin('POST', '/key/update', {
        key: made.key,
        object_permission: { mcp_servers: ['repo_wiki'] },
      })
    ).body.revision,
    2,
  );
  const entitled = await rig.connect(t, 'repo_wiki', made.key);
  t.deepEqual((await entitled.listTools()).tools.length, 2);
  const only = { mcp_tools: ['repo_wiki-fail'] };
  t.is(
    (await rig.admin('POST', '/key/update', { key: made.key_id, object_permission: only })).body.revision,
    3,
  );
  t.deepEqual(
    (await entitled.listTools()).tools.map(({ name }) => name),
    ['repo_wiki-fail'],
  );
  const asked = upstream.asked.length;
  t.true((await entitled.callTool(call)).isError);
  t.is(upstream.asked.length, asked, 'refused before the upstream is asked');

  const rotated = await rig.admin('POST', '/key/rotate', { key: made.key, overlap: '1h' });
  t.is(rotated.body.key_id, made.key_id);
  t.not(rotated.body.key, made.key);
  t.is((await entitled.listTools()).tools.length, 1, 'the value before is good for an hour more');
  const renewed = await rig.connect(t, 'repo_wiki', rotated.body.key);
  t.is((await renewed.listTools()).tools.length, 1);

  t.deepEqual((await rig.admin('POST', '/key/delete', { keys: [rotated.body.key] })).body, {
    deleted_keys: [made.key_id],
  });
  const refused = await rig.post('/repo_wiki/mcp', initialize, admission(made.key));
  t.is(refused.status, 401);
  t.is((await rig.rest('GET', '/key/info', { authorization: `Bearer ${made.key}` })).status, 401);
  t.is((await rig.admin('POST', '/key/update', { key: made.key, rpm_limit: 1 })).status, 409);
  t.is((await rig.admin('POST', '/key/delete', { keys: ['sk-nobody-knows-this-one'] })).status, 404);
  t.deepEqual(await rig.traces(made.key, rotated.body.key), []);
});

test('[G16] spend is told by user and by alias, and REST answers 429 over a limit', async (t) => {
  const upstream = await startUpstream(t);
  const costs = { echo: 0.1, '*': 0 };
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: upstream.url, costs })],
  });
  const scope = { object_permission: { mcp_servers: ['repo_wiki'] } };
  const make = async (fields: object) =>
    (await rig.admin('POST', '/key/generate', { ...scope, ...fields })).body.key;
  const spender = await make({ key_alias: 'one', user_id: 'ann', max_budget: 0.3 });
  const busy = await make({ key_alias: 'two', user_id: 'ann', rpm_limit: 1 });
  const call = { name: 'repo_wiki-echo', arguments: { text: 'hello' } };
  const client = await rig.connect(t, 'repo_wiki', spender);
  for (let count = 0; count < 3; count += 1) t.falsy((await client.callTool(call)).isError);
  const fourth = await client.callTool(call);
  t.regex(JSON.stringify(fourth.content), /Budget of this key exceeded/);
  t.true(
    (await client.callTool({ name: 'repo_wiki-fail', arguments: {} })).isError,
    'what costs nothing is not refused',
  );
  const other = await rig.connect(t, 'repo_wiki', busy);
  await other.callTool(call);
  const { body } = await rig.admin('GET', '/budget/list');
  t.deepEqual(body.spend_by_user_id, { ann: 0.4 });
  t.deepEqual(body.spend_by_key_alias, { one: 0.3, two: 0.1 });
  t.like(body.budgets[0], { key_alias: 'one', max_budget: 0.3, spend: 0.3, remaining: 0 });

  const overBudget = await rig.rest('GET', '/key/info', { authorization: `Bearer ${spender}` });
  t.is(overBudget.status, 429);
  t.regex(overBudget.body.error.message, /0\.3 of 0\.3 spent/);
  const overRate = await rig.rest('GET', '/key/info', { authorization: `Bearer ${busy}` });
  t.is(overRate.status, 429);
  const seconds = Number(overRate.headers.get('retry-after'));
  t.true(seconds >= 1 && seconds <= 60);
});

test('[G16] what never reached its upstream is given back', async (t) => {
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: nowhere, costs: { '*': 1 } })],
  });
  const key = await rig.mint({ servers: ['repo_wiki'], maxBudget: 1 });
  const headers = {
    ...admission(key),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'repo_wiki-echo',
  };
  const params = {
    name: 'repo_wiki-echo',
    _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' },
  };
  for (let count = 0; count < 3; count += 1) {
    const answer = await rig.post('/repo_wiki/mcp', rpc('tools/call', params), headers);
    t.is(answer.status, 502);
  }
  t.is((await rig.admin('GET', '/key/list')).body.keys[0].spend, 0);
  t.is((await rig.post('/repo_wiki/mcp', initialize, admission(key))).status, 502);
});

test('[G27,G16] an upstream keeps the query of its URL, which stands nowhere else; over the limit retry-after is told', async (t) => {
  const asked: string[] = [];
  const upstream = createServer((request, response) => {
    asked.push(request.url ?? '');
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}');
  });
  await listen(upstream);
  t.teardown(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const query = 'tools=a,b&apiKey=s3cret.in.the.query';
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/mcp?${query}`;
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'web_search', url })] });
  const key = await rig.mint({ servers: ['web_search'], rpmLimit: 1 });
  const params = {
    name: 'web_search-find',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'check', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  };
  const headers = {
    ...admission(key),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'web_search-find',
  };
  const call = () => rig.post('/web_search/mcp', rpc('tools/call', params), headers);
  t.is((await call()).status, 200);
  t.deepEqual(asked, [`/mcp?${query}`]);
  const second = await call();
  t.is(second.status, 200);
  t.regex(await second.text(), /"isError":true/);
  const seconds = Number(second.headers.get('retry-after'));
  t.true(seconds >= 1 && seconds <= 60);
  t.is(asked.length, 1);
  t.deepEqual(await rig.traces('s3cret.in.the.query'), []);
});
