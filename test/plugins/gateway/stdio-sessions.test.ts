import { resolve } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test from 'ava';
import { BROKEN_OFF, isAlive, messagesOf, program, StdioRig, said, until } from './stdio-rig.ts';

const EVERYTHING = resolve('node_modules/@modelcontextprotocol/server-everything/dist/index.js');

test('[G1,G23] the official client uses the everything server, a program, and hears its progress', async (t) => {
  const { server } = new StdioRig(t, { run: process.execPath, args: [EVERYTHING, 'stdio'] });
  const transport = new StreamableHTTPClientTransport(new URL('http://tested.invalid/mcp'), {
    fetch: (url, init) => server.fetch(new Request(url, init)),
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  t.teardown(() => client.close());
  const { tools } = await client.listTools();
  t.true(tools.some(({ name }) => name === 'echo'));
  const progress: number[] = [];
  const result = await client.callTool(
    { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
    { onprogress: (one) => void progress.push(one.progress) },
  );
  t.regex(JSON.stringify(result.content), /completed/);
  t.deepEqual(progress, [1, 2]);
  t.is(server.facts().processes, 1);
  await transport.terminateSession();
  t.is(server.facts().processes, 0);
});

test('[G4] each session has a process of its own, and DELETE ends it', async (t) => {
  const rig = new StdioRig(t, program());
  const [one, other] = await Promise.all([rig.begin(), rig.begin()]);
  const pids: number[] = await Promise.all([said(rig.call(one, 'pid')), said(rig.call(other, 'pid'))]);
  t.is(new Set(pids).size, 2);
  t.is((await rig.request('DELETE', undefined, one)).status, 200);
  t.deepEqual(pids.map(isAlive), [false, true]);
  t.is((await rig.call(one, 'pid')).status, 404);
  t.is(await said(rig.call(other, 'pid')), pids[1]);
  t.like(rig.server.facts(), { processes: 1, sessions: 1, restarts: 0 });
});

test('[G4] a session that nobody knows gets 404, a request without one 400, a method that is not of the protocol 405', async (t) => {
  const rig = new StdioRig(t, program());
  const unknown = { 'mcp-session-id': 'b9a4b0f2-94f5-4a6c-8f2c-0d3f3d1e6a5b' };
  t.is((await rig.call(unknown, 'pid')).status, 404);
  t.is((await rig.request('GET', undefined, unknown)).status, 404);
  t.is((await rig.request('DELETE', undefined, unknown)).status, 404);
  t.is((await rig.call({}, 'pid')).status, 400);
  t.is((await rig.request('PUT', {}, unknown)).status, 405);
  t.is(rig.server.facts().processes, 0);
});

test('[G4] a program that refuses initialize opens no session, and its answer is passed on', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const answer = await rig.request('POST', {
    id: 7,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25' },
  });
  t.is(answer.headers.get('mcp-session-id'), null);
  t.like(await answer.json(), { id: 7, error: { code: -32_601 } });
  await until(() => rig.server.facts().processes === 0);
  t.like(rig.server.facts(), { restarts: 0, waitingMs: 0 });
});

test('[G23] an answer alone is JSON, with the id as its client wrote it', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  for (const id of ['a"b', 0, -1, 9_007_199_254_740_991]) {
    const answer = await rig.call(session, 'echo', { text: 'ü\u2028\n' }, id);
    t.is(answer.headers.get('content-type'), 'application/json');
    const message: any = await answer.json();
    t.is(message.id, id);
    t.deepEqual(JSON.parse(message.result.content[0].text), { text: 'ü\u2028\n' });
  }
});

test('[G23] progress, log and questions of the server come on the stream of the request that runs', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const progress = await rig.call(session, 'progress', {}, 1, { progressToken: 'mine' });
  t.is(progress.headers.get('content-type'), 'text/event-stream');
  t.deepEqual(
    (await messagesOf(progress)).map(({ method, params }) => [
      method,
      params?.progressToken,
      params?.progress,
    ]),
    [
      ['notifications/progress', 'mine', 1],
      ['notifications/progress', 'mine', 2],
      ['notifications/progress', 'mine', 3],
      [undefined, undefined, undefined],
    ],
  );
  const log = await messagesOf(await rig.call(session, 'log', {}, 2));
  t.deepEqual(
    log.map(({ method, id }) => [method, id]),
    [
      ['notifications/message', undefined],
      [undefined, 2],
    ],
  );
  const asked = await rig.call(session, 'ask', {}, 3);
  const reply = { id: 'question-1', result: { roots: [{ uri: 'file:///home' }] } };
  t.is((await rig.request('POST', reply, session)).status, 202);
  t.deepEqual(await said(asked), reply.result);
});

test('[G23] progress finds its own request while others run', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const held = rig.call(session, 'hold', { text: 'held' }, 'held', { progressToken: 'mine' });
  t.is(
    (await messagesOf(await rig.call(session, 'release', {}, 2))).length,
    1,
    'which is the newest request',
  );
  t.deepEqual(
    (await messagesOf(await held)).map(({ id, params }) => id ?? params.progressToken),
    ['mine', 'held'],
  );
});

test('[G23] what belongs to no request comes on the stream that the client opens, also what came before it', async (t) => {
  const rig = new StdioRig(t, program('sessions', 'announce'));
  const session = await rig.begin();
  await said(rig.call(session, 'pid')); // the program has announced before it answers
  const leave = new AbortController();
  const stream = await rig.request('GET', undefined, session, leave.signal);
  const reader = stream.body?.getReader();
  const next = async (): Promise<string> => {
    const text = new TextDecoder().decode((await reader?.read())?.value);
    return text.startsWith(':') ? next() : text; // a comment that keeps a silent stream open
  };
  t.regex(await next(), /list_changed/);
  t.is((await messagesOf(await rig.call(session, 'announce'))).length, 1);
  t.regex(await next(), /list_changed/);
  leave.abort();
  t.true((await reader?.read())?.done);
  t.is((await messagesOf(await rig.call(session, 'announce', {}, 2))).length, 1);
});

test('[G23] a second request with the id of one that runs is refused, and the first one is answered', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const held = rig.call(session, 'hold', { text: 'first' }, 5);
  t.is((await rig.call(session, 'echo', {}, 5)).status, 400);
  await rig.call(session, 'release', {}, 6);
  t.deepEqual(await said(held), { text: 'first' });
});

test('[G23] a process that ends in mid-call breaks that session off, and no other one', async (t) => {
  const rig = new StdioRig(t, program());
  const [one, other] = await Promise.all([rig.begin(), rig.begin()]);
  const held = rig.call(other, 'hold', { text: 'held' });
  await t.throwsAsync(rig.call(one, 'die'), BROKEN_OFF);
  t.is((await rig.call(one, 'pid')).status, 404);
  t.like(rig.server.facts(), {
    processes: 1,
    waitingMs: 0,
    lastEnd: { reason: 'exit code 3', wanted: false },
  });
  await said(rig.call(other, 'release', {}, 2));
  t.deepEqual(await said(held), { text: 'held' });
  await t.throwsAsync(rig.call(other, 'abort', {}, 3), BROKEN_OFF);
  t.like(rig.server.facts(), { lastEnd: { reason: 'signal SIGABRT' } });
});

test('[G23] a stream whose process ends does not look whole', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const asked = await rig.call(session, 'ask');
  t.is(asked.headers.get('content-type'), 'text/event-stream');
  const text = asked.text();
  await t.throwsAsync(rig.call(session, 'die', {}, 2), BROKEN_OFF);
  await t.throwsAsync(text, BROKEN_OFF);
});
