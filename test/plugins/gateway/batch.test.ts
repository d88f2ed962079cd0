import test, { type ExecutionContext } from 'ava';
import { createParser } from 'eventsource-parser';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

const old = { ...initialize, params: { ...initialize.params, protocolVersion: '2025-03-26' } };
const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
const echo = (text: string, id: number): object =>
  rpc('tools/call', { name: 'wiki-echo', arguments: { text } }, id);

async function session(t: ExecutionContext, path: string, begin: object, json: boolean, servers = ['wiki']) {
  const upstream = await startUpstream(t, json);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = admission(await rig.mint({ servers }));
  const opened = await rig.post(path, begin, key);
  t.is(opened.status, 200);
  await opened.text();
  const headers = { ...key, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await (await rig.post(path, note, headers)).text();
  return { rig, headers };
}

async function messagesOf(answer: Response): Promise<any[]> {
  const messages: any[] = [];
  createParser({ onEvent: ({ data }) => messages.push(JSON.parse(data)) }).feed(await answer.text());
  return messages.toSorted((one, other) => one.id - other.id);
}

for (const [path, json] of [
  ['/wiki/mcp', true],
  ['/wiki/mcp', false],
  ['/mcp/', true],
] as const) {
  test(`[G23] a batch of revision 2025-03-26 is taken at ${path} (${json ? 'JSON' : 'events'}), each message decided and recorded for itself`, async (t) => {
    const { rig, headers } = await session(t, path, old, json);
    const batch = [echo('one', 1), note, rpc('tools/list', {}, 2), echo('two', 3), rpc('no/such', {}, 4)];
    const answer = await rig.post(path, batch, headers);
    t.is(answer.status, 200);
    t.is(answer.headers.get('content-type'), 'text/event-stream');
    const messages = await messagesOf(answer);
    t.deepEqual(
      messages.map(({ id }) => id),
      [1, 2, 3, 4],
    );
    t.is(messages[0].result.content[0].text, 'one');
    t.is(messages[1].result.tools[0].name, 'wiki-echo');
    t.is(messages[2].result.content[0].text, 'two');
    t.is(messages[3].error.code, -32_601);
    const decided = (await rig.records())
      .map(({ event }) => event as { type: string; method?: string })
      .filter(({ type, method }) => type === 'CALL' && method === 'tools/call');
    t.is(decided.length, 2);
  });
}

test('[G23] a batch without a request gets 202', async (t) => {
  const { rig, headers } = await session(t, '/wiki/mcp', old, true);
  const answer = await rig.post('/wiki/mcp', [note, note], headers);
  t.is(answer.status, 202);
  t.is(await answer.text(), '');
});

test('[G5,G23] a batch reaches no more than its messages would alone', async (t) => {
  const { rig, headers } = await session(t, '/wiki/mcp', old, true, []);
  const messages = await messagesOf(
    await rig.post('/wiki/mcp', [echo('x', 1), rpc('tools/list', {}, 2)], headers),
  );
  t.is(messages[0].result.isError, true);
  t.deepEqual(messages[1].result.tools, []);
});

test('[G16,G23] each message of a batch counts against the limits of its key', async (t) => {
  const upstream = await startUpstream(t, true);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = admission(await rig.mint({ servers: ['wiki'], rpmLimit: 2 }));
  const opened = await rig.post('/wiki/mcp', old, key);
  await opened.text();
  const headers = { ...key, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  const batch = [1, 2, 3, 4, 5].map((id) => echo('x', id));
  const messages = await messagesOf(await rig.post('/wiki/mcp', batch, headers));
  t.true(messages.filter(({ result }) => result.isError === true).length >= 3);
});

test('[G4,G23] what is wrong with a batch is answered as a whole: revision, session, size, initialize, and what is refused alike', async (t) => {
  const { rig, headers } = await session(t, '/wiki/mcp', old, true);
  const refused = async (batch: unknown, more: Readonly<Record<string, string>> = headers) => {
    const answer = await rig.post('/wiki/mcp', batch, more);
    const body: any = await answer.json();
    return [answer.status, body.error?.message ?? body.detail];
  };
  const ping = (id: number) => rpc('ping', {}, id);
  t.deepEqual(await refused([]), [400, 'Invalid Request: the batch is empty']);
  t.deepEqual(await refused([old]), [400, 'Invalid Request: initialize is no part of a batch']);
  t.deepEqual(await refused(Array.from({ length: 51 }, (_, id) => ping(id))), [
    400,
    'Invalid Request: a batch has 50 messages at most',
  ]);
  t.deepEqual(await refused([ping(1)], { ...headers, 'mcp-protocol-version': '2025-06-18' }), [
    400,
    'Invalid Request: a batch is part of revision 2025-03-26 alone',
  ]);
  t.deepEqual(await refused([ping(1), ping(2)], { ...headers, 'mcp-session-id': 'other' }), [
    404,
    'Session not found',
  ]);
  t.is((await rig.post('/wiki/mcp', [ping(1)])).status, 401);
  const newer = await session(t, '/wiki/mcp', initialize, true);
  const answer = await newer.rig.post('/wiki/mcp', [ping(1)], newer.headers);
  t.is(answer.status, 400);
});
