import type { ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { answerEmpty, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

/** A gateway whose upstream begins every stream and every call of a tool, and ends none by itself. */
async function setUp(t: ExecutionContext, options: object, clock?: VirtualClock) {
  const open = new Set<ServerResponse>();
  const upstream = await startScripted(t, (response, heard, request) => {
    const stays = heard.method === 'GET' || heard.text.includes('tools/call');
    if (!stays) return answerEmpty(response, heard, request);
    open.add(response);
    response.once('close', () => open.delete(response));
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  });
  const routes = [credentialFree({ name: 'wiki', url: upstream.url })];
  const rig = await Rig.start(t, { routes, ...options }, tempDir(t), clock);
  const master = (body: object) => rig.admin('POST', '/key/generate', body);
  const client = async (key: string) => {
    const first = await rig.post('/wiki/mcp', initialize, admission(key));
    await first.text();
    const headers = { ...admission(key), 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
    const stream = () => fetch(`${rig.url}/wiki/mcp`, { headers: { ...headers, accept: MEDIA } });
    const call = (method = 'tools/call') => rig.post('/wiki/mcp', rpc(method, { name: 'wiki-x' }), headers);
    return { stream, call, headers };
  };
  return { rig, open, master, client };
}

const object_permission = { mcp_servers: ['wiki'] };

test('[G16] a key has no more streams open than it may, hears when to come back, and has room when one ends', async (t) => {
  const { rig, open, master, client } = await setUp(t, { maxStreams: 3 });
  const { body } = await master({ object_permission, max_streams: 1, key_alias: 'few' });
  t.is(body.max_streams, 1);
  const few = await client(body.key);
  const { body: another } = await master({ object_permission });
  const other = await client(another.key);

  const first = await few.stream();
  t.is(first.status, 200);
  const refused = await few.stream();
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '1');
  t.regex(await refused.text(), /Too many streams of this key .* max_streams/);
  t.is(open.size, 1, 'its upstream does not hear of it');
  for (let count = 0; count < 3; count += 1)
    t.is((await other.stream()).status, 200, 'others have their own');
  t.is((await other.stream()).status, 429, 'and no more than the gateway gives');
  t.is((await few.call('tools/list')).status, 200, 'what is no stream goes on');

  await first.body?.cancel();
  while (open.size > 3) await after(10);
  let again = await few.stream();
  while (again.status === 429) {
    await after(20); // the upstream may hear of the end before the gateway has closed its own side
    again = await few.stream();
  }
  t.is(again.status, 200);
  t.is((await rig.admin('POST', '/key/update', { key: body.key, max_streams: 2 })).status, 200);
  t.is((await few.stream()).status, 200, 'a raised limit counts at once');
});

test('[G16] a key has no more calls under way than it may; a refusal is a result for a tool, a status else', async (t) => {
  const { open, master, client } = await setUp(t, { maxParallel: 2 });
  const { body } = await master({ object_permission });
  const { call, headers } = await client(body.key);
  const calls = [await call(), await call()];
  const refused = await call();
  t.is(refused.status, 200);
  t.is(refused.headers.get('retry-after'), '1');
  t.like(((await refused.json()) as { result: object }).result, { isError: true });
  const list = await call('tools/list');
  t.is(list.status, 429);
  t.like(await list.json(), { id: 7, error: { code: -32_000 } });
  t.is(open.size, 2);
  const ended = await fetch(refused.url, { method: 'DELETE', headers });
  t.not(ended.status, 429, 'what ends a session is not refused');
  for (const one of calls) await one.body?.cancel();
});

test('[G16] what one key may have held is bounded before a body is read; others, and small requests, go on', async (t) => {
  const { rig, master, client } = await setUp(t, { maxHeldBytes: 65_536 });
  const few = await client((await master({ object_permission })).body.key);
  const other = await client((await master({ object_permission })).body.key);
  const text = 'x'.repeat(40_000);
  const large = (headers: Record<string, string>) =>
    rig.post('/wiki/mcp', rpc('tools/call', { name: 'wiki-x', arguments: { text } }), headers);
  const first = await large(few.headers);
  t.is(first.status, 200);
  const refused = await large(few.headers);
  t.is(refused.status, 429, 'its upstream still has the first');
  t.is(refused.headers.get('retry-after'), '1');
  t.regex(await refused.text(), /too large together/);
  const chunked = await fetch(`${rig.url}/wiki/mcp`, {
    method: 'POST',
    headers: { ...few.headers, 'content-type': 'application/json', accept: MEDIA },
    body: new Blob([JSON.stringify(rpc('ping'))]).stream(),
    duplex: 'half',
  } as RequestInit);
  t.is(chunked.status, 429, 'of a length that is not told the most is assumed');
  t.is((await few.call('tools/list')).status, 200);
  const another = await large(other.headers);
  t.is(another.status, 200);
  await another.body?.cancel();
  const decided = (await rig.records()).filter(
    ({ event }) => (event as { method?: string }).method === 'unread',
  );
  t.like(decided[0]?.event, { openCount: decided[0]!.event.unreadBytes, defaultLimit: 65_536 });
  t.like(decided[0]?.effects[0]?.params, { rule: 'too_many_bytes_open' });
  await first.body?.cancel();
  let again = await large(few.headers);
  while (again.status === 429) {
    await after(20); // until the end of the first is noticed
    again = await large(few.headers);
  }
  t.is(again.status, 200);
  await again.body?.cancel();
});

test('[G14,C2] a revoked key in a loop is refused to the last call, is counted to the last, and does not fill the disk', async (t) => {
  const { rig, master, client } = await setUp(t, {});
  const { body } = await master({ object_permission });
  const { call } = await client(body.key);
  await rig.admin('POST', '/key/delete', { keys: [body.key_id] });
  const before = (await rig.records()).length;
  const answers = await Promise.all(Array.from({ length: 500 }, () => call('tools/list')));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [401]);
  const records = (await rig.records()).slice(before);
  t.true(records.length < 150, `${records.length} records`);
  const calls = records.flatMap(({ event }) => (event.type === 'CALL' ? [event as { count?: number }] : []));
  t.is(
    calls.reduce((sum, { count = 1 }) => sum + count, 0),
    500,
  );
  const { body: list } = await rig.admin('GET', '/key/list');
  t.is(list.keys.find((one: { key_id: string }) => one.key_id === body.key_id).refused, 500);
  t.is(
    (await call('tools/list')).status,
    401,
    'who comes later waits for a record of its own, and hears the same',
  );
});

test('[G16,C2] calls that wait with a refused one are decided each for itself when the first is admitted', async (t) => {
  const clock = new VirtualClock();
  const { rig, master, client } = await setUp(t, {}, clock);
  const { body } = await clock.passUntil(master({ object_permission: { mcp_servers: [] } }));
  const { call } = await clock.passUntil(client(body.key));
  const wave = () => Promise.all(Array.from({ length: 60 }, () => call()));
  const refused = await clock.passUntil(wave());
  for (const answer of refused) t.true(((await answer.json()) as { result: any }).result.isError);
  const before = (await clock.passUntil(rig.records())).length;
  const waiting = Promise.all(Array.from({ length: 8 }, () => call()));
  // No time passes, so the calls wait for as long as the change takes.
  const changed = await rig.admin('POST', '/key/update', { key: body.key, object_permission, rpm_limit: 3 });
  t.is(changed.status, 200);
  const answers = await clock.passUntil(waiting);
  const streams = answers.filter((answer) => /event-stream/.test(answer.headers.get('content-type') ?? ''));
  t.is(streams.length, 3, 'the limit holds among them');
  for (const stream of streams) await stream.body?.cancel();
  const records = (await clock.passUntil(rig.records())).slice(before);
  const admitted = records.filter(({ effects }) => effects.some(({ type }) => type === 'gateway.forward'));
  t.is(admitted.length, 3);
  t.is(admitted.filter(({ event }) => 'count' in event).length, 1);
});
