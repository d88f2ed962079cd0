import test from 'ava';
import { subscriberFailed } from '../../../src/bus/bus.ts';
import { routes } from './admin-routes.ts';
import { Rig } from './rig.ts';

test('[G14,G25] admin endpoints take the master key in Authorization, and nothing else', async (t) => {
  const rig = await Rig.start(t, { routes });
  const key = await rig.mint({ servers: ['memory'] });
  const master = rig.masterKey;
  const endpoints: ['GET' | 'POST', string][] = [
    ['POST', '/key/generate'],
    ['POST', '/key/update'],
    ['POST', '/key/delete'],
    ['POST', '/key/rotate'],
    ['GET', '/key/list'],
    ['GET', '/budget/list'],
    ['GET', '/v1/mcp/server'],
  ];
  const callers: [Record<string, string>, RegExp][] = [
    [{}, /No api key passed in/],
    [{ authorization: master }, /Malformed API Key passed in\. Ensure Key has `Bearer ` prefix\./],
    [{ authorization: `Bearer ${key}` }, /Only the master key/],
    [{ authorization: 'Bearer sk-nobody-knows-this-one' }, /Invalid API Key/],
    [{ 'x-gateway-api-key': `Bearer ${master}` }, /No api key passed in/],
  ];
  for (const [method, path] of endpoints) {
    for (const [headers, text] of callers) {
      const { status, body } = await rig.rest(method, path, headers, method === 'POST' ? '{}' : undefined);
      t.is(status, 401, path);
      const { message, ...rest } = body.error;
      t.deepEqual(rest, { type: 'auth_error', param: 'None', code: '401' });
      t.regex(message, text);
      t.true(message.startsWith('Authentication Error, '));
    }
  }
  t.is((await rig.rest('GET', '/key/list', { authorization: `Bearer ${master}` })).body.total_count, 1);
  const turned = (await rig.records()).filter(({ event }) => event.type === 'REJECTED');
  t.is(turned.length, endpoints.length * callers.length);
  const where = 'header x-gateway-api-key';
  const told = { misplaced: 'master_key', where, rest: true };
  t.is(turned.filter(({ event }) => (event as { misplaced?: string }).misplaced).length, endpoints.length);
  t.like(turned.at(-1)?.event, { rule: 'no_key', ...told });
  t.deepEqual(await rig.alerts(), ['gateway.master_key_misplaced'], 'once a minute');
  const misplaced: [Record<string, string>, string][] = [
    [{ 'x-gateway-api-key': `Bearer ${key}` }, where],
    [{ 'x-api-key': key, authorization: `Bearer ${key}` }, 'header x-api-key'],
    [{ 'x-api-key': master }, 'header x-api-key'],
  ];
  for (const [headers, place] of misplaced) {
    t.is((await rig.rest('GET', '/key/list', headers)).status, 401);
    const { event } = (await rig.records()).findLast((record) => record.event.type === 'REJECTED')!;
    t.like(event, { where: place, rest: true });
  }
  t.deepEqual((await rig.alerts()).sort(), ['gateway.key_misplaced', 'gateway.master_key_misplaced']);
  t.deepEqual(await rig.traces(key, master), []);
});

test('[G14,G25] a request to an admin path that is let in tells of another key beside its own, and of its own in both headers nothing', async (t) => {
  const rig = await Rig.start(t, { routes });
  const key = await rig.mint({ servers: ['memory'] });
  const master = rig.masterKey;
  const own = { authorization: `Bearer ${master}` };
  const failed: unknown[] = [];
  rig.runtime.services.bus.subscribe(subscriberFailed, 'test', ({ payload }) => failed.push(payload));
  const beside: [string, Record<string, string>, string, string][] = [
    ['/key/list', { ...own, 'x-api-key': key }, 'virtual_key', 'header x-api-key'],
    [
      '/key/list',
      { ...own, 'x-gateway-api-key': `Bearer ${key}` },
      'virtual_key',
      'header x-gateway-api-key',
    ],
    ['/v1/mcp/server', { ...own, cookie: `key=${master}` }, 'master_key', 'header cookie'],
    ['/key/info', { authorization: `Bearer ${key}`, 'x-key': master }, 'master_key', 'header x-key'],
  ];
  for (const [path, headers, kind, place] of beside) {
    const answer = await rig.rest('GET', path, headers);
    t.is(answer.status, 200, path);
    const correlation = answer.headers.get('x-correlation-id');
    const of = async () => (await rig.records()).filter((record) => record.correlation === correlation);
    while ((await of()).filter(({ event }) => event.type === 'CALL_ENDED').length === 0);
    const told = (await of()).find(({ event }) => event.type === 'REJECTED');
    t.like(told?.event, { rule: 'let_in', path, misplaced: kind, where: place, rest: true });
  }
  const before = (await rig.records()).length;
  const both = { authorization: `Bearer ${key}`, 'x-gateway-api-key': `Bearer ${key}` };
  t.is((await rig.rest('GET', '/key/info', both)).status, 200);
  t.is((await rig.admin('GET', '/key/list')).status, 200);
  const letIn = async () =>
    (await rig.records()).slice(before).filter(({ event }) => event.type === 'REJECTED');
  // Whatever the two requests before it had to tell would be recorded before what this one tells.
  t.is((await rig.rest('GET', '/key/list', { ...own, 'x-api-key': key })).status, 200);
  while ((await letIn()).length === 0);
  t.deepEqual(
    (await letIn()).map(({ event }) => (event as { where?: string }).where),
    ['header x-api-key'],
    'the same key in both is in no wrong place',
  );
  t.deepEqual(failed, [], 'nothing incomplete was published');
  t.deepEqual((await rig.alerts()).sort(), ['gateway.key_misplaced', 'gateway.master_key_misplaced']);
  t.deepEqual(await rig.traces(key, master), []);
});

test('[G14] whatever the admin paths are asked wrongly is answered in one shape', async (t) => {
  const rig = await Rig.start(t, { routes, bodyLimit: 1_024 });
  const headers = { authorization: `Bearer ${rig.masterKey}`, 'content-type': 'application/json' };
  const wrong: [method: string, path: string, status: number, type: string, init?: RequestInit][] = [
    ['GET', '/key/generate', 405, 'bad_request_error'],
    ['PUT', '/v1/mcp/server', 405, 'bad_request_error'],
    ['POST', '/key/nothing', 404, 'not_found_error', { body: '{}' }],
    ['GET', '/budget/info', 404, 'not_found_error'],
    ['POST', '/key/generate', 413, 'bad_request_error', { body: JSON.stringify('x'.repeat(2_000)) }],
    ['POST', '/key/generate', 400, 'bad_request_error', { body: '{' }],
    [
      'POST',
      '/key/generate',
      403,
      'bad_request_error',
      { body: '{}', headers: { ...headers, origin: 'https://elsewhere.example' } },
    ],
    ['POST', '/key/delete', 404, 'not_found_error', { body: '{"key":"nobody"}' }],
  ];
  for (const [method, path, status, type, init = {}] of wrong) {
    const answer = await fetch(`${rig.url}${path}`, { method, headers, ...init });
    t.is(answer.status, status, path);
    const body = (await answer.json()) as { error: { message: string; param: string } };
    const { message, ...error } = body.error;
    t.deepEqual(body, { error: { ...error, message } });
    t.like(error, { type, param: 'None', code: String(status) });
    t.true(message.length > 10);
    t.is(
      answer.headers.get('allow'),
      status === 405 ? (method === 'GET' ? 'POST' : 'GET, HEAD') : null,
      path,
    );
  }
  t.like(await (await fetch(`${rig.url}/nothing`)).json(), { detail: 'route not found' });
});

test('[G14] a key in the URL is refused, and stands in no answer, no record and no log line', async (t) => {
  const rig = await Rig.start(t, { routes });
  const key = await rig.mint({ servers: ['memory'] });
  for (const headers of [
    {},
    { authorization: `Bearer ${key}` },
    { authorization: `Bearer ${rig.masterKey}` },
  ]) {
    const { status, body } = await rig.rest('GET', `/key/info?key=${key}`, headers as Record<string, string>);
    t.is(status, 400);
    t.regex(body.error.message, /URL ends up in logs/);
    t.false(JSON.stringify(body).includes(key));
  }
  t.true((await rig.alerts()).includes('gateway.key_in_query'));
  t.deepEqual(await rig.traces(key), []);
});

test('[G27] a key restricted to llm_api_routes is pointed to the lists', async (t) => {
  const rig = await Rig.start(t, { routes });
  const { body } = await rig.admin('POST', '/key/generate', { allowed_routes: ['llm_api_routes'] });
  const answer = await rig.rest('GET', '/key/info', { authorization: `Bearer ${body.key}` });
  t.is(answer.status, 401);
  t.is(answer.body.error.type, 'auth_error');
  t.regex(answer.body.error.message, /\/key\/list and \/budget\/list/);
});

test('[G14] /key/info describes the key that asks, so the master key is refused there', async (t) => {
  const rig = await Rig.start(t, { routes });
  const { status, body } = await rig.admin('GET', '/key/info');
  t.is(status, 401);
  t.regex(body.error.message, /The master key is no virtual key/);
});
