import { Client as StatelessClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { PROBE_NAME } from '../../../src/plugins/gateway/mcp/probe-client.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';
import { isAlive, program, until } from './stdio-rig.ts';

const SESSIONS = credentialFree({ name: 'sessions', command: program() });
const STATELESS = credentialFree({ name: 'stateless', command: program('stateless') });

async function call(client: Pick<Client, 'callTool'>, name: string, given: Record<string, unknown> = {}) {
  const { content } = await client.callTool({ name, arguments: given });
  return JSON.parse((content as { text: string }[])[0]?.text ?? '');
}

test('[G1] a route of a program serves clients with sessions and without, alone and among others, recorded like any other', async (t) => {
  const rig = await Rig.start(t, { routes: [SESSIONS, STATELESS] });
  const key = await rig.mint({ servers: ['sessions', 'stateless'] });
  const client = await rig.connect(t, 'sessions', key);
  const { tools } = await client.listTools();
  t.true(tools.some(({ name }) => name === 'sessions-echo'));
  t.deepEqual(await call(client, 'sessions-echo', { text: 'one' }), { text: 'one' });

  const stateless = new StatelessClient(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  t.teardown(() => stateless.close());
  await stateless.connect(
    new StreamableHTTPClientTransport(new URL(`${rig.url}/stateless/mcp`), {
      requestInit: { headers: admission(key) },
    }),
  );
  t.deepEqual(await call(stateless as never, 'stateless-echo', { text: 'two' }), { text: 'two' });

  const aggregate = await rig.connectTo(t, '/mcp/', admission(key));
  t.deepEqual(await call(aggregate, 'sessions-echo', { text: 'three' }), { text: 'three' });
  const calls = (await rig.ended(3)).filter(({ method }) => method === 'tools/call');
  t.deepEqual(
    calls.map(({ outcome }) => outcome),
    ['ok', 'ok', 'ok'],
  );
});

test('[G3,G6] a key without the route starts no program', async (t) => {
  const rig = await Rig.start(t, { routes: [SESSIONS] });
  t.is((await rig.post('/sessions/mcp', initialize)).status, 401);
  const other = await rig.connect(t, 'sessions', await rig.mint({ servers: ['another'] }));
  t.deepEqual((await other.listTools()).tools, []);
  t.false(rig.lines.some((line) => line.includes('gateway.server_started')));
});

test('[G16] what a key may not call any more does not reach the program', async (t) => {
  const rig = await Rig.start(t, { routes: [STATELESS] });
  const headers = admission(await rig.mint({ servers: ['stateless'], rpmLimit: 1 }));
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  const ask = () =>
    rig.post('/stateless/mcp', rpc('tools/call', { name: 'stateless-die', arguments: {}, _meta: meta }), {
      ...headers,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'stateless-die',
    });
  t.is((await ask()).status, 502);
  t.regex(await (await ask()).text(), /Rate limit/);
});

test('[G23] a program that ends in mid-call is a broken connection to its client, and to the record', async (t) => {
  const rig = await Rig.start(t, { routes: [SESSIONS] });
  const headers = admission(await rig.mint({ servers: ['sessions'] }));
  const begun = await rig.post('/sessions/mcp', initialize, headers);
  const session = { ...headers, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const answer = await rig.post(
    '/sessions/mcp',
    rpc('tools/call', { name: 'sessions-die', arguments: {} }),
    session,
  );
  t.is(answer.status, 502);
  t.like(await answer.json(), { error: { message: 'The upstream of sessions broke the connection off.' } });
  t.is((await rig.whenEnded('tools/call')).outcome, 'cut');
  const later = await rig.post('/sessions/mcp', rpc('tools/list'), session);
  t.is(later.status, 404, 'so that the client begins another session');
});

test('[G1] a client is told why a program does not serve it, and when to come back', async (t) => {
  const busy = credentialFree({ name: 'busy', command: { ...program(), maxProcesses: 1 } });
  const keyless = credentialFree({ name: 'keyless', command: { ...program(), secrets: { KEY: 'a/b#c' } } });
  const rig = await Rig.start(t, { routes: [busy, keyless] });
  const headers = admission(await rig.mint({ servers: ['busy', 'keyless'] }));
  t.is((await rig.post('/busy/mcp', initialize, headers)).status, 200);
  const refused = await rig.post('/busy/mcp', initialize, headers);
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '10');
  const without = await rig.post('/keyless/mcp', initialize, headers);
  t.is(without.status, 503);
  t.like(await without.json(), {
    error: { message: 'The server can not be started: its secret for KEY can not be read.' },
  });
});

test('[G17] the probe lists the tools of a program, also while it runs as often as it may', async (t) => {
  const route = credentialFree({ name: 'probed', command: { ...program(), maxProcesses: 1 } });
  const rig = await Rig.start(t, { routes: [route], probeEveryMs: 1_000 });
  const begun = await rig.post('/probed/mcp', initialize, admission(await rig.mint({ servers: ['probed'] })));
  t.is(begun.status, 200);
  const started = () => rig.lines.filter((line) => line.includes('gateway.server_started')).length;
  const before = started();
  await until(() => started() > before);
  const health = () => (rig.runtime.health().gateway as any).upstreams.probed;
  await until(() => health().state === 'healthy' && health().program.lastEnd !== undefined);
  t.like(health().program, { restarts: 0, lastEnd: { wanted: true } });
  t.true(health().program.processes >= 1);
});

test('[G1] a client that takes the name of the probe gets no more processes than others', async (t) => {
  const route = credentialFree({ name: 'taken', command: { ...program(), maxProcesses: 1 } });
  const rig = await Rig.start(t, { routes: [route] });
  const headers = admission(await rig.mint({ servers: ['taken'] }));
  const clientInfo = { name: PROBE_NAME, version: '1' };
  const asProbe = rpc('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  for (let time = 0; time < 2; time += 1) await rig.post('/taken/mcp', asProbe, headers);
  t.is((await rig.post('/taken/mcp', initialize, headers)).status, 503);
});

test('[G1] a stop of the runtime ends the programs', async (t) => {
  const rig = await Rig.start(t, { routes: [SESSIONS] });
  const client = await rig.connect(t, 'sessions', await rig.mint({ servers: ['sessions'] }));
  const pid = await call(client, 'sessions-pid');
  t.true(isAlive(pid));
  await rig.runtime.stop('test');
  t.false(isAlive(pid));
});
