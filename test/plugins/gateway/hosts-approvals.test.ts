import test, { type ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
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
});
