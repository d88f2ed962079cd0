import test from 'ava';
import { openVault } from '../../../src/core/host/secrets/vault.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { Approvals } from '../../../src/plugins/gateway/approvals/approvals.ts';
import { askedCall } from '../../../src/plugins/gateway/approvals/asked-call.ts';
import { ApprovalLinks } from '../../../src/plugins/gateway/approvals/link.ts';
import type { Route } from '../../../src/plugins/gateway/routes/route.ts';
import { tempDir } from '../../support/temp.ts';
import { ApprovalRig, wipe } from './approval-rig.ts';
import { admission, rpc } from './rig.ts';

const PUBLIC = 'https://mcp.example.net';

test('[G6,G12,G23] no way around a person: by the aggregate, in a batch, without a session and beside other tools a call waits, too', async (t) => {
  const here = await ApprovalRig.open(t, { options: { approvals: { maxWaitingPerKey: 10 } } });
  const { rig, server, key } = here;
  const aggregate = await rig.connectTo(t, '/mcp/', admission(key));
  const calls = [wipe(aggregate, 'by-aggregate')];
  await here.waiting(t, 1);
  const client = await here.connect(t);
  calls.push(wipe(client, 'plain'));
  await here.waiting(t, 2);
  const batch = [
    rpc('tools/call', { name: 'pages-read', arguments: {} }),
    { ...rpc('tools/call', { name: 'pages-wipe', arguments: { page: 'by-batch' } }), id: 77 },
  ];
  const { headers } = await rig.post(
    '/pages/mcp',
    rpc('initialize', {
      protocolVersion: '2025-03-26',
      capabilities: {},
      clientInfo: { name: 'old', version: '1' },
    }),
    admission(key),
  );
  const session = { ...admission(key), 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
  const batched = rig.post('/pages/mcp', batch, session).then((answer) => answer.text());
  await here.waiting(t, 3);
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const stateless = rig
    .post(
      '/pages/mcp',
      rpc('tools/call', { name: 'pages-wipe', arguments: { page: 'stateless' }, _meta: meta }),
      {
        ...admission(key),
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'pages-wipe',
      },
    )
    .then((answer) => answer.text());
  const waiting = await here.waiting(t, 4);
  t.deepEqual(server.wiped, []);
  for (const { id } of waiting) await here.decide(id, 'denied');
  for (const said of await Promise.all(calls)) t.regex(said, /^refused: /);
  t.regex(await batched, /denied/);
  t.regex(await stateless, /denied/);
  t.deepEqual(server.wiped, []);
});

test('[G6] what a person reads of a call can not turn around or hide: format characters of names and arguments are shown as escapes', async (t) => {
  const here = await ApprovalRig.open(t, { options: { publicUrl: PUBLIC } });
  const client = await here.connect(t);
  const page = 'safe\u202e\u2066gpj.hs\u2069\u200b\u{e0041}</pre><script>alert(1)</script>';
  const held = wipe(client, page);
  held.catch(() => {}); // a failed test closes its client
  const [request] = await here.waiting(t);
  t.regex(request?.arguments ?? '', /safe\\u202e\\u2066gpj\.hs\\u2069\\u200b\\udb40\\udc41/);
  const link = linkFor(here, request?.id ?? '');
  const shown = await (await fetch(link)).text();
  t.notRegex(shown, /[\u202e\u2066\u2069\u200b]|\u{e0041}|<script>/u);
  t.regex(shown, /safe\\u202e\\u2066gpj/);
  await here.decide(request?.id ?? '', 'denied');
  await held;
});

test('[G6] a link decides about its own request, until its own time, by its form alone, and once', async (t) => {
  const here = await ApprovalRig.open(t, { options: { publicUrl: PUBLIC } });
  const client = await here.connect(t);
  const [held, other] = [wipe(client, 'one'), wipe(client, 'other')];
  for (const one of [held, other]) one.catch(() => {}); // a failed test closes its client
  const [first, second] = await here.waiting(t, 2);
  const link = linkFor(here, first?.id ?? '');
  const form = (verdict: string, address = link, headers: object = {}) =>
    fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ verdict, why: 'by link' }),
    });
  const [until = '', mac = ''] = (link.searchParams.get('token') ?? '').split('.');
  const forged = (change: (url: URL) => void) => {
    const url = new URL(link);
    change(url);
    return url;
  };
  const refused = [
    forged((url) => void (url.pathname = url.pathname.replace(first?.id ?? '', second?.id ?? ''))),
    forged((url) => url.searchParams.set('token', `${Number(until) + 60_000}.${mac}`)),
    forged((url) => url.searchParams.set('token', `${until}.${'A'.repeat(43)}`)),
    forged((url) => url.searchParams.set('token', `${until}.`)),
    forged((url) => url.searchParams.append('token', `${until}.${mac}`)),
    forged((url) => url.searchParams.delete('token')),
  ];
  for (const address of refused) {
    t.true([401, 403].includes((await form('approved', address)).status), address.search.slice(0, 40));
    t.true([401, 403].includes((await fetch(address)).status));
  }
  t.is((await form('approved', link, { origin: 'https://evil.example' })).status, 403);
  t.true((await form('approved', link, { 'content-type': 'text/plain' })).status >= 400);
  t.is((await fetch(link)).status, 200);
  t.is((await fetch(link, { method: 'HEAD' })).status, 405);
  t.is((await here.waiting(t, 2)).length, 2, 'nothing of this decided');
  t.is((await form('denied')).status, 200);
  t.is((await form('approved')).status, 409);
  await here.decide(second?.id ?? '', 'denied');
  for (const said of await Promise.all([held, other])) t.regex(said, /^refused: /);
  t.deepEqual(here.server.wiped, []);
  t.deepEqual(await here.rig.traces(mac), [], 'who reads the log can not decide');
});

test('[G6,G8] one approval is for one person where several have one key: also where their tokens are exchanged', (t) => {
  const vault = openVault(tempDir(t));
  const digestOf = (disposition: string, authorization: string) =>
    askedCall(
      { route: { name: 'tickets', entry: { disposition } } as Route, tool: 'close' },
      {
        key: { id: 'k_1', presented: 'k_1', authorization: 'bearer' },
        message: {
          kind: 'request',
          method: 'tools/call',
          id: 1,
          name: 'tickets-close',
          revision: undefined,
          body: {
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'tickets-close', arguments: {} },
          },
        },
        authorization,
      },
      {},
      vault,
    ).digest;
  for (const disposition of ['relay', 'token_exchange']) {
    t.not(digestOf(disposition, 'Bearer ann'), digestOf(disposition, 'Bearer bob'), disposition);
    t.is(digestOf(disposition, 'Bearer ann'), digestOf(disposition, 'Bearer ann'));
  }
  t.is(digestOf('overwrite', 'Bearer ann'), digestOf('overwrite', 'Bearer bob'), 'the upstream gets neither');
});

test('[G6] what stands beside the arguments, and a server may act on, is a part of the call: a person sees it', (t) => {
  const vault = openVault(tempDir(t));
  const asked = (_meta: object) =>
    askedCall(
      { route: { name: 'tickets', entry: { disposition: 'overwrite' } } as Route, tool: 'close' },
      {
        key: { id: 'k_1', presented: 'k_1', authorization: undefined },
        message: {
          kind: 'request',
          method: 'tools/call',
          id: 1,
          name: 'tickets-close',
          revision: undefined,
          body: {
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'x', arguments: { id: 7 }, _meta },
          },
        },
        authorization: undefined,
      },
      {},
      vault,
    );
  const plain = asked({});
  const hidden = asked({ 'vendor.example/force': true });
  t.not(hidden.digest, plain.digest);
  t.regex(hidden.shown, /vendor\.example\/force/);
  const protocol = { progressToken: 5, traceparent: '00-1-1-01', 'io.modelcontextprotocol/clientInfo': {} };
  t.deepEqual(asked(protocol), plain, 'what differs between two tries of one call does not count');
});

/** The link of an alert, at the address where the instance listens. */
function linkFor({ rig }: ApprovalRig, approval: string): URL {
  const { services } = rig.runtime;
  const limits = { deadlineMs: 1, maxWaiting: 1, maxWaitingPerKey: 1 };
  const links = new ApprovalLinks({
    approvals: new Approvals(services, limits),
    clock: systemClock,
    dataDir: rig.dataDir,
    publicBase: rig.url,
  });
  const labels = { approval, state: 'firing' };
  return new URL(String(links.linkOf({ name: 'gateway.approval_waiting', labels })));
}
