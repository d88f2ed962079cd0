import { setTimeout as after } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { type Heard, resultFor, type Script, startScripted } from '../../support/scripted-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

const tool = { name: 'late', inputSchema: { type: 'object' } };
const begun = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
};
const methodOf = ({ text }: Heard): string => (text === '' ? '' : JSON.parse(text).method);
const isProbe = ({ text }: Heard): boolean => text.includes('holdfast-health');

/** A server that answers until it hangs, and again when it does no more. */
class Hanging {
  hangs = true;
  readonly script: Script = (response, heard) => {
    if (this.hangs) return undefined;
    const json = { 'content-type': 'application/json' };
    switch (methodOf(heard)) {
      case 'initialize':
        return response.writeHead(200, json).end(resultFor(heard, begun));
      case 'tools/list':
        return response.writeHead(200, json).end(resultFor(heard, { tools: [tool] }));
      default:
        return response.writeHead(202).end();
    }
  };
}

const unavailable = (body: any): { server: string; reason: string }[] =>
  body.result._meta?.['holdfast/unavailable'] ?? [];

/** A session of the aggregate, and a request in it. */
async function aggregate(rig: Rig, key: string): Promise<(body: object) => Promise<any>> {
  const headers = admission(key);
  const opened = await rig.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await opened.text();
  return async (body) => (await rig.post('/mcp/', body, session)).json();
}

async function setting(t: ExecutionContext, deadlineMs: number, timeoutMs = 120_000) {
  const hanging = new Hanging();
  const slow = await startScripted(t, hanging.script);
  const good = await startUpstream(t);
  const rig = await Rig.start(t, {
    aggregateDeadlineMs: deadlineMs,
    routes: [
      credentialFree({ name: 'slow', url: slow.url, timeoutMs }),
      credentialFree({ name: 'wiki', url: good.url }),
    ],
  });
  return { hanging, slow, rig, key: await rig.mint({ servers: ['slow', 'wiki'] }) };
}

test('[G12,G17] a route that is known to be down is skipped and named, until one probe at a time finds it back', async (t) => {
  t.timeout(300_000);
  const { hanging, slow, rig, key } = await setting(t, 1_000);
  const send = await aggregate(rig, key);
  const list = () => send(rpc('tools/list'));
  for (let turn = 0; turn < 2; turn += 1) {
    t.deepEqual(unavailable(await list()), [{ server: 'slow', reason: 'does not answer in time' }]);
  }
  t.deepEqual(await rig.alerts(), ['gateway.route_down']);

  const asked = slow.heard.length;
  const skipped = await Promise.all(Array.from({ length: 10 }, list));
  for (const answer of skipped) {
    t.deepEqual(unavailable(answer), [
      { server: 'slow', reason: 'is down: its upstream does not answer in time' },
    ]);
    t.is(answer.result.tools.length, 2, 'the others are there');
  }
  const heard = slow.heard.slice(asked);
  t.true(heard.length <= 1 && heard.every(isProbe), 'ten requests make one probe at most');

  hanging.hangs = false;
  for (let tools: unknown[] = []; tools.length < 3; await after(100)) tools = (await list()).result.tools;
  t.deepEqual(unavailable(await list()), []);
  t.deepEqual(await rig.alerts(), ['gateway.route_down', 'gateway.route_down'], 'raised, and over');
  t.true(slow.heard.some(isProbe));
});

test('[G12] all that a merged request needs of one upstream fits into one deadline', async (t) => {
  t.timeout(300_000);
  const deadlineMs = 4_000;
  let sessions = 0;
  // It forgets its first session, begins the next one slowly, and lists slowly: each part would be in time by itself.
  const slow = await startScripted(t, async (response, heard) => {
    const method = methodOf(heard);
    const headers = { 'content-type': 'application/json', 'mcp-session-id': `s${sessions}` };
    if (method === 'initialize') {
      sessions += 1;
      if (sessions > 1) await after(deadlineMs * 0.6);
      headers['mcp-session-id'] = `s${sessions}`;
      return response.writeHead(200, headers).end(resultFor(heard, begun));
    }
    if (method.startsWith('notifications')) return response.writeHead(202).end();
    if (heard.headers['mcp-session-id'] === 's1') return response.writeHead(404).end();
    await after(deadlineMs * 0.6);
    return response.writeHead(200, headers).end(resultFor(heard, { tools: [tool] }));
  });
  const rig = await Rig.start(t, {
    aggregateDeadlineMs: deadlineMs,
    routes: [credentialFree({ name: 'slow', url: slow.url })],
  });
  const send = await aggregate(rig, await rig.mint({ servers: ['slow'] }));
  t.deepEqual(unavailable(await send(rpc('tools/list'))), [
    { server: 'slow', reason: 'does not answer in time' },
  ]);
  t.log(`${sessions} sessions were asked for`);
});

test('[G12,G23] a call to a server that hangs is a timeout in its status, text and record, after one deadline', async (t) => {
  t.timeout(300_000);
  const deadlineMs = 6_000;
  const { rig, slow, key } = await setting(t, deadlineMs);
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const headers = {
    ...admission(key),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'slow-late',
  };
  const heard = slow.heard.length;
  const answer = await rig.post(
    '/mcp/',
    rpc('tools/call', { name: 'slow-late', arguments: {}, _meta: meta }),
    headers,
  );
  t.is(answer.status, 504);
  const body: any = await answer.json();
  t.is(body.error.message, 'The upstream of slow does not answer in time.');
  t.is((await rig.whenEnded('tools/call')).outcome, 'timed_out');
  const asked = slow.heard.slice(heard).filter((request) => !isProbe(request));
  t.is(asked.length, 1, 'what was not answered in time is not followed by another request');
});

test('[G12,G17] calls of a single route that fail count too, and one that is answered begins the count anew', async (t) => {
  t.timeout(300_000);
  const { rig, key, hanging } = await setting(t, 1_000, 300);
  const headers = admission(key);
  const state = async () => (rig.runtime.health().gateway as any).upstreams.slow?.state;
  const begin = async () => (await rig.post('/slow/mcp', initialize, headers)).status;
  t.is(await begin(), 504);
  t.is(await begin(), 504);
  hanging.hangs = false;
  t.is(await begin(), 200);
  hanging.hangs = true;
  t.is(await begin(), 504);
  t.is(await begin(), 504);
  await rig.ended(5);
  t.is(await state(), 'degraded');
  t.is(await begin(), 504);
  await rig.ended(6);
  t.is(await state(), 'down');
  t.is(await begin(), 504, 'a single route is asked all the same');
  const send = await aggregate(rig, key);
  t.regex(unavailable(await send(rpc('tools/list')))[0]?.reason ?? '', /^is down: its upstream /);
});
