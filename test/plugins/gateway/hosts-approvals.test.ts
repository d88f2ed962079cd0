import test, { type ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { approvalActor } from '../../../src/plugins/gateway/approvals/actor.ts';
import type { ApprovalView } from '../../../src/plugins/gateway/approvals/view.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { tempDir } from '../../support/temp.ts';
import { joining, type Member, MemoryCluster } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';
import { Counting, wipe } from './approval-rig.ts';
import { Rig } from './rig.ts';

const { signal } = new AbortController();

interface Host {
  readonly rig: Rig;
  readonly member: Member;
  list(): Promise<{ approvals: readonly ApprovalView[]; unanswered: readonly string[] }>;
  decide(id: string | undefined, verdict: 'approved' | 'denied', why: string): Promise<number>;
}

async function host(t: ExecutionContext, cluster: MemoryCluster, name: string, server: Counting) {
  const dataDir = tempDir(t);
  const member = cluster.join(name, dataDir);
  const routes = [
    credentialFree({ name: 'pages', server: server.serve, toolSettings: { wipe: { approval: 'ask' } } }),
  ];
  const approvals = { maxWaitingPerKey: 100 };
  const rig = await Rig.start(t, { routes, approvals }, dataDir, undefined, [joining(member)]);
  member.runtime = rig.runtime;
  const control = (path: string, body: object) => postControl(dataDir, path, body, signal);
  return {
    rig,
    member,
    list: async () => (await control('/gateway/approvals', {})).body as Awaited<ReturnType<Host['list']>>,
    decide: async (id: string | undefined, verdict: string, why: string) =>
      (await control('/gateway/approvals/decide', { id, verdict, why, by: 'ann' })).status,
  };
}

/** Two hosts with one server, of which one tool asks a person, and a key that both know. */
async function pair(t: ExecutionContext) {
  const [cluster, server] = [new MemoryCluster(), new Counting()];
  const a = await host(t, cluster, 'a', server);
  const b = await host(t, cluster, 'b', server);
  const minted = await postControl(
    a.rig.dataDir,
    '/gateway/keys/mint',
    { key_alias: 'desk', object_permission: { mcp_servers: ['pages'] } },
    signal,
  );
  await until('b knows it', () => b.rig.runtime.services.actors.states('gateway.key').length === 1);
  return { a, b, server, key: (minted.body as { key: string }).key };
}

const here = async (on: Host): Promise<readonly ApprovalView[]> =>
  (await on.list()).approvals.filter((view) => view.host === undefined);

test('[C13,G6] a denial stands on every host: the same call is asked of nobody again, another one is', async (t) => {
  const { a, b, server, key } = await pair(t);
  const said = wipe(await a.rig.connect(t, 'pages', key));
  await until('it waits', async () => (await here(a)).length === 1);
  t.is(await a.decide((await here(a))[0]?.id, 'denied', 'it is in use'), 200);
  t.regex(await said, /^refused: .*denied by ann: it is in use/);
  const client = await b.rig.connect(t, 'pages', key);
  t.regex(await wipe(client), /^refused: .*denied by ann: it is in use/);
  t.deepEqual(await here(b), []);
  const other = wipe(client, 'another page');
  await until('the other call waits', async () => (await here(b)).length === 1);
  t.is(await b.decide((await here(b))[0]?.id, 'approved', 'nobody reads it'), 200);
  t.is(await other, 'wiped another page');
  t.deepEqual(server.wiped, ['another page']);

  // What merely waits elsewhere is not denied: a person is asked here, too.
  const waiting = wipe(client, 'one more');
  await until('it waits', async () => (await here(b)).some(({ state }) => state === 'waiting'));
  const same = wipe(await a.rig.connect(t, 'pages', key), 'one more');
  await until('it waits here, too', async () => (await here(a)).some(({ state }) => state === 'waiting'));
  for (const on of [a, b]) {
    const asked = (await here(on)).find(({ state }) => state === 'waiting');
    t.is(await on.decide(asked?.id, 'denied', 'no'), 200);
  }
  for (const said of [waiting, same]) t.regex(await said, /^refused: .*denied by ann: no/);
});

/** What the hosts say to each other from now on. */
function wiretap({ member }: Host): readonly string[] {
  const said: string[] = [];
  const ask = member.ask.bind(member);
  member.ask = async (question, body) => {
    const found = await ask(question, body);
    said.push(JSON.stringify(body), ...found.answers.map(({ answer }) => JSON.stringify(answer)));
    return found;
  };
  return said;
}

test('[C13,G6,G19] a call that waits on another host is shown with its arguments, which no message between the hosts has in clear', async (t) => {
  const { a, b, key } = await pair(t);
  const said = wiretap(b);
  const client = await a.rig.connect(t, 'pages', key);
  const wiped = wipe(client, 'the-diary-of-ann');
  await until('it waits', async () => (await here(a)).length === 1);
  const [asked] = (await b.list()).approvals;
  t.regex(asked?.arguments ?? '', /the-diary-of-ann/);
  t.is(await b.decide(asked?.id, 'denied', 'it-is-private'), 200);
  t.regex(await wiped, /it-is-private/);
  t.true(said.length >= 4);
  // Whoever may use the servers of NATS may ask: without the key nobody is answered.
  await t.throwsAsync(b.member.ask('gateway.approvals', { what: 'list' }), { code: 'HF_SECRET_SEALED' });
  t.deepEqual(
    said.filter((text) => /diary|private|wipe|arguments/.test(text)),
    [],
  );
});

test('[C13,G6] more calls that wait on another host than one answer holds are all shown, with their arguments', async (t) => {
  const { a, b } = await pair(t);
  const said = wiretap(b);
  const { actors, vault } = a.rig.runtime.services;
  const at = Date.now();
  const waiting = Array.from({ length: 60 }, (_, i) => {
    const digest = vault.fingerprint({ i });
    const request = { ...{ id: `call-${i}`, key: 'k_1', route: 'pages', tool: 'wipe' }, digest };
    const blobs = new Map([[digest, vault.seal(`${i} ${'x'.repeat(8_000)}`, 'gateway.approval')]]);
    const event = { type: 'ASKED', at, until: at + 600_000, request } as const;
    return actors.send(approvalActor, String(i + 1), event, { blobs }).durable();
  });
  await Promise.all(waiting);
  const { approvals, unanswered } = await b.list();
  t.deepEqual(unanswered, []);
  t.deepEqual(
    approvals.map((view) => view.arguments?.split(' ')[0]).sort((one, other) => Number(one) - Number(other)),
    waiting.map((_, i) => String(i)),
  );
  const longest = Math.max(...said.map((text) => text.length));
  t.true(longest < 255 * 1024, `${longest} bytes, of which a question may be answered by 255 KiB`);
});
