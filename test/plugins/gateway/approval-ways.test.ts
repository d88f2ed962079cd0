import {
  Client as StatelessClient,
  StreamableHTTPClientTransport as StatelessTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import test, { type ExecutionContext } from 'ava';
import { createParser } from 'eventsource-parser';
import { newRequest } from '../../../src/plugins/gateway/approvals/new-request.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { readMessage } from '../../../src/plugins/gateway/mcp/message.ts';
import { type Disposition, needsIdentity } from '../../../src/plugins/gateway/routes/entry.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { ApprovalRig, Counting, wipe } from './approval-rig.ts';
import { admission, initialize, rpc } from './rig.ts';
import { program } from './stdio-rig.ts';
import { until } from './talkers.ts';

type Caller = Pick<Client, 'callTool'>;

/** One gateway with every kind of upstream; each call of `echo` asks a person. */
async function open(t: ExecutionContext) {
  const [events, json] = [await startUpstream(t), await startUpstream(t, true)];
  const entry = { toolSettings: { echo: { approval: 'ask' as const } } };
  const routes = [
    credentialFree({ name: 'events', url: events.url, ...entry }),
    credentialFree({ name: 'json', url: json.url, ...entry }),
    credentialFree({ name: 'program', command: program(), ...entry }),
  ];
  const servers = routes.map(({ name }) => name);
  const on = await ApprovalRig.open(t, { options: { routes, toolSearchAbove: 1 } });
  const key = await on.rig.mint({ alias: 'ways', servers });
  return { on, key, headers: admission(key), json };
}

/** Has a call approved once its client has heard that it waits. @returns its text */
async function approved(t: ExecutionContext, on: ApprovalRig, client: Caller, name: string): Promise<string> {
  let heard = 0;
  const given = { name, arguments: { text: `by ${name}` } };
  const result = client.callTool(given, undefined, { timeout: 600_000, onprogress: () => (heard += 1) });
  const [asked] = await on.waiting(t);
  await until(t, 'its client hears of it', () => heard > 0);
  t.is((await on.decide(asked?.id ?? '', 'approved')).status, 200);
  const { content } = await result;
  return (content as { text: string }[])[0]?.text ?? '';
}

test('[G6,G23] every way of calling waits alike: events, JSON and a program, alone, by the aggregate and by its SSE form', async (t) => {
  const { on, key, headers } = await open(t);
  for (const route of ['events', 'json', 'program']) {
    const client = await on.rig.connect(t, route, key);
    const text = await approved(t, on, client, `${route}-echo`);
    t.true(text.includes(`by ${route}-echo`), route);
  }
  const aggregate = await on.rig.connectTo(t, '/mcp/', headers);
  for (const route of ['events', 'json', 'program']) {
    const text = await approved(t, on, aggregate, `${route}-echo`);
    t.true(text.includes(`by ${route}-echo`), route);
  }
  const searching = await on.rig.connectTo(t, '/mcp/', { ...headers, 'x-mcp-tool-search': '1' });
  const found = searching.callTool({
    name: 'call_tool',
    arguments: { name: 'json-echo', arguments: { text: 'found' } },
  });
  const [asked] = await on.waiting(t);
  t.like(asked, { route: 'json', tool: 'echo' }, 'a tool that was searched for asks like any other');
  await on.decide(asked?.id ?? '', 'approved');
  t.like(await found, { content: [{ text: 'found' }] });
  const sse = new Client({ name: 'test', version: '1.0.0' });
  t.teardown(() => sse.close());
  const transport = new SSEClientTransport(new URL(`${on.rig.url}/mcp/sse`), { requestInit: { headers } });
  await sse.connect(transport as never);
  t.is(await approved(t, on, sse, 'json-echo'), 'by json-echo');
});

test('[G6,G18] a client of the stateless revision waits, and gets results of its own revision', async (t) => {
  const on = await ApprovalRig.open(t);
  const client = new StatelessClient(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  t.teardown(() => client.close());
  const requestInit = { headers: admission(on.key) };
  await client.connect(new StatelessTransport(new URL(`${on.rig.url}/pages/mcp`), { requestInit }));
  const calls = [wipe(client as never, 'one'), wipe(client as never, 'two')];
  const asked = await on.waiting(t, 2);
  const idOf = (page: string) => asked.find(({ arguments: given }) => given?.includes(page))?.id ?? '';
  await on.decide(idOf('one'), 'approved');
  await on.decide(idOf('two'), 'denied', 'no');
  const said = await Promise.all(calls);
  t.is(said[0], 'wiped one');
  t.regex(said[1] ?? '', /^refused: Error: The call was denied by ann: no/);
});

test('[G6,G23] in a batch one message waits, and the answers to the others come before', async (t) => {
  const { on, headers, json } = await open(t);
  const begin = { ...initialize, params: { ...initialize.params, protocolVersion: '2025-03-26' } };
  const opened = await on.rig.post('/json/mcp', begin, headers);
  await opened.text();
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  const echo = rpc(
    'tools/call',
    { name: 'json-echo', arguments: { text: 'late' }, _meta: { progressToken: 'p' } },
    1,
  );
  const answer = await on.rig.post('/json/mcp', [echo, rpc('tools/list', {}, 2)], session);
  const messages: any[] = [];
  const parser = createParser({ onEvent: ({ data }) => messages.push(JSON.parse(data)) });
  const read = (async () => {
    for await (const chunk of answer.body ?? []) parser.feed(Buffer.from(chunk).toString('utf8'));
  })();
  const [asked] = await on.waiting(t);
  await until(t, 'the other is answered', () => messages.some(({ id }) => id === 2));
  t.false(messages.some(({ id }) => id === 1));
  t.is(json.asked.length, 2, 'its upstream knows of the beginning and the list alone');
  await on.decide(asked?.id ?? '', 'approved');
  await read;
  t.is(messages.find(({ id }) => id === 1).result.content[0].text, 'late');
  t.true(
    messages.some(
      ({ method, params }) => method === 'notifications/progress' && params.progressToken === 'p',
    ),
  );
});

test('[G6] a call that does not reach its upstream gives the approval back, and what the upstream changed meanwhile is refused', async (t) => {
  const server = new Counting();
  const routes = [
    credentialFree({ name: 'away', url: 'http://127.0.0.1:9/mcp', approval: 'ask' }),
    credentialFree({ name: 'pages', server: server.serve, approval: 'ask', pin: 'ask' }),
  ];
  const on = await ApprovalRig.open(t, { server, options: { routes, probeEveryMs: 50 } });
  const key = await on.rig.mint({ alias: 'two', servers: ['away', 'pages'] });
  // An upstream that is away opens no session, so the call comes without one by the stateless revision.
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const call = rpc('tools/call', { name: 'away-go', arguments: {}, _meta: meta });
  const headers = {
    ...admission(key),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'away-go',
  };
  const first = on.rig.post('/away/mcp', call, headers);
  const [asked] = await on.waiting(t);
  await on.decide(asked?.id ?? '', 'approved');
  t.is((await first).status, 502);
  const state = () => on.rig.runtime.services.actors.states('gateway.approval')[0]?.value;
  await until(t, 'it is given back', () => state() === 'approved');
  t.is(
    (await on.rig.post('/away/mcp', call, headers)).status,
    502,
    'it goes at once, and is given back again',
  );

  const pinned = () => on.rig.runtime.services.actors.snapshot('gateway.tool_pins/pages')?.value;
  await until(t, 'the tools are known', () => pinned() === 'accepted');
  const waiting = wipe(await on.rig.connect(t, 'pages', key));
  const [other] = await on.waiting(t);
  server.text = 'Wipes everything.';
  await until(t, 'the change is known', () => pinned() === 'changed');
  await on.decide(other?.id ?? '', 'approved');
  t.regex(await waiting, /^refused: Error: User not allowed to call this tool/);
  t.deepEqual(server.wiped, []);
});

test('[G6] two calls are the same by every parameter as it was written, and on a relay route by the token; a person sees no secret of them', (t) => {
  const read = (params: string, authorization?: string, disposition: Disposition = 'relay') => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":${params}}}`;
    const message = readMessage(Buffer.from(body));
    if ('code' in message) throw new Error(message.text);
    const asked = {
      route: { name: 'bank', needsIdentity: needsIdentity({ disposition }) },
      tool: 'pay',
    } as never;
    const key = { id: 'k_1' } as never;
    const vault = { fingerprint: (value: unknown) => JSON.stringify(value) as never };
    return newRequest(asked, { key, message, headers: { authorization } }, {}, vault);
  };
  const digest = (...given: Parameters<typeof read>): string => read(...given).digest;
  const texts = [
    '{}',
    '{"n":1}',
    '{"n":"1"}',
    '{"n":"n1"}',
    '{"n":9007199254740993}',
    '{"n":9007199254740992}',
    '{"n":"9007199254740993"}',
    '{"n":null}',
    '{"n":[1]}',
    '{"n":{"n":1}}',
    '{"m":1}',
  ];
  t.is(new Set(texts.map((text) => digest(text))).size, texts.length);
  t.is(digest('{"n":1}', 'Bearer a'), digest('{"n":1}', 'Bearer a'));
  t.not(digest('{"n":1}', 'Bearer a'), digest('{"n":1}', 'Bearer b'));
  t.is(digest('{}', 'Bearer a', 'overwrite'), digest('{}', 'Bearer b', 'overwrite'));
  const { shown } = read('{"password":"canary-1","note":"Bearer canary-2","n":9007199254740993}');
  t.notRegex(shown, /canary/, 'a person sees no secret');
  t.regex(shown, /9007199254740993/, 'and each number as it was written');
  const long = read(`{"text":"${'long words '.repeat(5_000)}"}`).shown;
  t.true(long.length < 9_000);
  t.regex(long, /characters more, which are not shown$/);
});
