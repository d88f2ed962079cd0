import test from 'ava';
import { openVault } from '../../../src/core/host/secrets/vault.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { Approvals } from '../../../src/plugins/gateway/approvals/approvals.ts';
import { ApprovalLinks } from '../../../src/plugins/gateway/approvals/link.ts';
import { newRequest } from '../../../src/plugins/gateway/approvals/new-request.ts';
import { type Disposition, needsIdentity } from '../../../src/plugins/gateway/routes/entry.ts';
import type { Route } from '../../../src/plugins/gateway/routes/route.ts';
import { tempDir } from '../../support/temp.ts';
import { ApprovalRig, wipe } from './approval-rig.ts';

const PUBLIC = 'https://mcp.example.net';

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

test('[G6,G8] one approval is for one person where several have one key: also where their tokens are exchanged', (t) => {
  const vault = openVault(tempDir(t));
  const digestOf = (disposition: Disposition, authorization: string) =>
    newRequest(
      { route: { name: 'tickets', needsIdentity: needsIdentity({ disposition }) } as Route, tool: 'close' },
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
        headers: { authorization },
      },
      {},
      vault,
    ).digest;
  for (const disposition of ['relay', 'token_exchange'] as const) {
    t.not(digestOf(disposition, 'Bearer ann'), digestOf(disposition, 'Bearer bob'), disposition);
    t.is(digestOf(disposition, 'Bearer ann'), digestOf(disposition, 'Bearer ann'));
  }
  t.is(digestOf('overwrite', 'Bearer ann'), digestOf('overwrite', 'Bearer bob'), 'the upstream gets neither');
});

test('[G6] what stands beside the arguments, and a server may act on, is a part of the call: a person sees it', (t) => {
  const vault = openVault(tempDir(t));
  const asked = (_meta: object, headers: Readonly<Record<string, string>> = {}) =>
    newRequest(
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
        headers,
      },
      {},
      vault,
    );
  const plain = asked({});
  const hidden = asked({ 'vendor.example/force': true });
  t.not(hidden.digest, plain.digest);
  t.regex(hidden.shown, /vendor\.example\/force/);
  const other = asked({}, { 'mcp-param-force': 'true' });
  t.not(other.digest, plain.digest);
  t.regex(other.shown, /mcp-param-force/);
  const protocol = { progressToken: 5, traceparent: '00-1-1-01', 'io.modelcontextprotocol/clientInfo': {} };
  t.deepEqual(asked(protocol), plain, 'what differs between two tries of one call does not count');
});

/** The link of an alert, at the address where the instance listens. */
function linkFor({ rig }: ApprovalRig, approval: string): URL {
  const { services } = rig.runtime;
  const limits = { deadlineMs: 1, maxWaiting: 1, maxWaitingPerKey: 1 };
  const links = new ApprovalLinks({
    sharedKey: undefined,
    deadlineMs: 900_000,
    approvals: new Approvals(services, limits),
    clock: systemClock,
    dataDir: rig.dataDir,
    publicBase: rig.url,
  });
  const labels = { approval, state: 'firing' };
  return new URL(String(links.linkOf({ name: 'gateway.approval_waiting', labels })));
}
