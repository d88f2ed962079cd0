import test, { type ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { credentialFree, type gateway } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { joining, MemoryCluster } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';
import { Counting, wipe } from './approval-rig.ts';
import { admission, initialize, Rig } from './rig.ts';

type Options = NonNullable<Parameters<typeof gateway>[0]>;
const { signal } = new AbortController();

/** A host of two, with a key for its routes: those of `reads` and `changes` have one upstream, and `pages` asks a person. */
async function open(t: ExecutionContext, options: Options = {}) {
  const cluster = new MemoryCluster();
  const [{ url }, server] = [await startUpstream(t, true), new Counting()];
  const routes = [
    credentialFree({ name: 'reads', url }),
    credentialFree({ name: 'changes', url, writes: true }),
    credentialFree({
      ...{ name: 'pages', server: server.serve, writes: true },
      toolSettings: { wipe: { approval: 'ask' } },
    }),
  ];
  const dataDir = tempDir(t);
  cluster.join('a', tempDir(t));
  const member = cluster.join('b', dataDir);
  const rig = await Rig.start(t, { routes, ...options }, dataDir, undefined, [joining(member)]);
  member.runtime = rig.runtime;
  const minted = await postControl(
    dataDir,
    '/gateway/keys/mint',
    { key_alias: 'desk', object_permission: { mcp_servers: ['reads', 'changes', 'pages'] } },
    signal,
  );
  return { rig, member, server, key: (minted.body as { key: string }).key };
}

/** An event stream of a route. @returns whether it has ended */
async function stream(rig: Rig, key: string, route: string): Promise<() => boolean> {
  const begun = await rig.post(`/${route}/mcp`, initialize, admission(key));
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const headers = { ...admission(key), accept: 'text/event-stream', ...session };
  const events = await fetch(`${rig.url}/${route}/mcp`, { headers });
  if (events.status !== 200) throw new Error(`${route} answers ${events.status}`);
  let ended = false;
  const end = () => {
    ended = true;
  };
  events.text().then(end, end);
  return () => ended;
}

const ask = async (rig: Rig, key: string, route: string) =>
  (await rig.post(`/${route}/mcp`, initialize, admission(key))).status;

test('[C13,G14] a host that has been cut off for longer than an answer may take gives no key a new value, and says why at once', async (t) => {
  const { rig, member } = await open(t);
  Object.assign(member, { isCut: true, silentMs: 6_000 });
  const ask = (path: string, body: object) => postControl(rig.runtime.services.dataDir, path, body, signal);
  for (const [path, body] of [
    ['/gateway/keys/mint', { key_alias: 'lost' }],
    ['/gateway/keys/rotate', { key: 'desk' }],
  ] as const) {
    const { status, body: answer } = await ask(path, body);
    t.is(status, 503, path);
    t.regex(JSON.stringify(answer), /HF_GATEWAY_KEY_CUT_OFF/);
  }
  Object.assign(member, { isCut: false, isBehind: true });
  const minted = ask('/gateway/keys/mint', { key_alias: 'found' });
  member.isBehind = false;
  t.is((await minted).status, 200, 'what passes in a moment is waited for');
});

test('[C13,G6,G18] a host that is cut off ends streams of routes that write at once, and lets others go on for its grace', async (t) => {
  const { rig, member, key } = await open(t);
  const [changes, reads] = [await stream(rig, key, 'changes'), await stream(rig, key, 'reads')];
  member.isCut = true;
  await until('it ends the stream of the route that writes', changes);
  t.false(reads());
  t.deepEqual([await ask(rig, key, 'changes'), await ask(rig, key, 'reads')], [503, 200]);
});

test('[C13,G6,G18] a host that has been cut off for its grace ends every stream', async (t) => {
  const { rig, member, key } = await open(t, { isolationGraceMs: 0 });
  const reads = await stream(rig, key, 'reads');
  member.isCut = true;
  await until('it ends the stream', reads);
  t.is(await ask(rig, key, 'reads'), 503);
});

test('[C13,G6,G23] a call that a person approves on a host that is cut off is not carried out until it is back', async (t) => {
  const { rig, member, key, server } = await open(t);
  const list = async () => {
    const { body } = await postControl(rig.dataDir, '/gateway/approvals', {}, signal);
    return (body as { approvals: readonly { id: string; state: string }[] }).approvals;
  };
  const client = await rig.connect(t, 'pages', key);
  const said = wipe(client);
  await until('it waits', async () => (await list()).length === 1);
  member.isCut = true;
  const [asked] = await list();
  const decision = { id: asked?.id, verdict: 'approved', by: 'ann', why: 'asked for' };
  t.is((await postControl(rig.dataDir, '/gateway/approvals/decide', decision, signal)).status, 200);
  await t.throwsAsync(said, { message: /This host is cut off .* Nothing was called/ });
  t.deepEqual(server.wiped, []);
  t.is((await list())[0]?.state, 'approved');
  member.isCut = false;
  t.is(await wipe(client), 'wiped home', 'the approval is good for the same call');
});
