import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test, { type ExecutionContext } from 'ava';
import { BROKEN_OFF, messagesOf, program, StdioRig, said, until } from './stdio-rig.ts';

const SERVER = new URL('../../support/stdio-stateless.ts', import.meta.url).pathname;
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

const call = (rig: StdioRig, name: string, given: object = {}, more: Parameters<StdioRig['ask']>[2] = {}) =>
  rig.ask('tools/call', { name, arguments: given }, more);

async function connect(t: ExecutionContext, { server }: StdioRig): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  t.teardown(() => client.close());
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://tested.invalid/mcp'), {
      fetch: (url, init) => server.fetch(new Request(url, init)),
    }),
  );
  return client;
}

test('[G1,G23] clients of the stateless revision share one process of the official server, and each hears its own', async (t) => {
  const rig = new StdioRig(t, { run: process.execPath, args: [SERVER] });
  const [one, other] = await Promise.all([connect(t, rig), connect(t, rig)]);
  const heard: string[] = [];
  const echo = async (client: Client, text: string) => {
    const onprogress = () => void heard.push(text);
    return client.callTool({ name: 'echo', arguments: { text } }, { onprogress });
  };
  const answers = await Promise.all(
    ['a', 'b', 'c'].flatMap((text) => [echo(one, text), echo(other, `${text}2`)]),
  );
  t.deepEqual(
    answers.map(({ content }) => (content as { text: string }[])[0]?.text),
    ['a', 'a2', 'b', 'b2', 'c', 'c2'],
  );
  t.deepEqual(heard.sort(), ['a', 'a2', 'b', 'b2', 'c', 'c2']);
  t.like(rig.server.facts(), { processes: 1, sessions: 0 });
});

test('[G23] a caller of the stateless revision that leaves ends its request in the official server', async (t) => {
  const rig = new StdioRig(t, { run: process.execPath, args: [SERVER] });
  const leave = new AbortController();
  const waiting = call(rig, 'wait', {}, { signal: leave.signal });
  t.is(await said(call(rig, 'left')), 0);
  leave.abort(new Error('left'));
  await t.throwsAsync(waiting, { message: 'left' });
  while ((await said(call(rig, 'left'))) !== 1);
  t.pass();
});

test('[G23] a subscription to the official server goes by the id of the caller that opened it', async (t) => {
  const rig = new StdioRig(t, { run: process.execPath, args: [SERVER] });
  const leave = new AbortController();
  const wanted = { notifications: { toolsListChanged: true } };
  const stream = await rig.ask('subscriptions/listen', wanted, { id: 'mine', signal: leave.signal });
  const reader = stream.body?.getReader();
  const next = async (): Promise<any> => {
    const text = new TextDecoder().decode((await reader?.read())?.value);
    return text.startsWith(':') ? next() : JSON.parse(text.split('data: ')[1] ?? '');
  };
  const acknowledged = await next();
  t.is(acknowledged.method, 'notifications/subscriptions/acknowledged');
  t.is(acknowledged.params._meta[SUBSCRIPTION], 'mine');
  t.is((await messagesOf(await call(rig, 'change'))).length, 1, 'the change is not of this request');
  const changed = await next();
  t.is(changed.method, 'notifications/tools/list_changed');
  t.is(changed.params._meta[SUBSCRIPTION], 'mine');
  leave.abort();
});

test('[G23] two callers with the same ids and tokens at once get their own answers', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const meta = { _meta: { progressToken: 'same' } };
  const held = ['one', 'two'].map((text) => call(rig, 'hold', { text }, meta));
  const progress = await messagesOf(await call(rig, 'progress', {}, meta));
  t.deepEqual(
    progress.map(({ params }) => params?.progressToken),
    ['same', 'same', 'same', undefined],
  );
  await call(rig, 'release');
  const answers = await Promise.all(held.map(async (one) => messagesOf(await one)));
  t.deepEqual(
    answers.map(([heard, { id, result }]) => [
      heard.params.progressToken,
      id,
      JSON.parse(result.content[0].text),
    ]),
    [
      ['same', 1, { text: 'one' }],
      ['same', 1, { text: 'two' }],
    ],
  );
});

test('[G23] no caller cancels what belongs to another one, and a log line of nobody is dropped', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const held = call(rig, 'hold', { text: 'held' });
  const headers = { 'mcp-protocol-version': '2026-07-28' };
  for (const requestId of [1, 2, 3]) {
    const cancel = { method: 'notifications/cancelled', params: { requestId } };
    t.is((await rig.request('POST', cancel, headers)).status, 202);
  }
  t.deepEqual(await said(call(rig, 'cancelled')), []);
  t.is((await messagesOf(await call(rig, 'log'))).length, 1);
  t.is((await messagesOf(await call(rig, 'announce'))).length, 1);
  await call(rig, 'release');
  t.deepEqual(await said(held), { text: 'held' });
});

test('[G23] a question of the server has no place in the stateless revision, and is answered to it with an error', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  t.is(await said(call(rig, 'ask')), undefined); // what the program read was the error, which has no result
  t.is(rig.server.facts().processes, 1);
});

test('[G18] a program of earlier revisions is refused by what clients know, and asked once only', async (t) => {
  const rig = new StdioRig(t, program());
  for (let times = 0; times < 2; times += 1) {
    const answer = await rig.ask('tools/list');
    t.is(answer.status, 400);
    const { error }: any = await answer.json();
    t.is(error.code, -32_022);
    t.deepEqual(error.data.supported, ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']);
  }
  t.is(rig.lines.filter((line) => line.includes('gateway.server_started')).length, 1);
  t.is(typeof (await said(rig.call(await rig.begin(), 'pid'))), 'number', 'a session goes on');
});

test('[G23] a method that is not there is 404 in the stateless revision, as at a port', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const answer = await rig.ask('no/such', {}, { id: 'x' });
  t.is(answer.status, 404);
  t.like(await answer.json(), { id: 'x', error: { code: -32_601 } });
});

test('[G23] the shared process that ends breaks every call off, and is started again after a delay', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const held = call(rig, 'hold');
  held.catch(() => {});
  await t.throwsAsync(call(rig, 'die'), BROKEN_OFF);
  await t.throwsAsync(held, BROKEN_OFF);
  const early = await call(rig, 'pid');
  t.is(early.status, 503);
  t.is(early.headers.get('retry-after'), '1');
  t.regex(await early.text(), /ended by itself/);
  await until(() => rig.server.facts().waitingMs === 0);
  t.is((await call(rig, 'pid')).status, 200);
  t.like(rig.server.facts(), { restarts: 1, lastEnd: { reason: 'exit code 3', wanted: false } });
});
