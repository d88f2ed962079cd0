import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { credentialFree, type gateway } from '../../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { joining, type Member, MemoryCluster } from '../../support/two-hosts.ts';
import { until } from '../../support/until.ts';
import { Counting, wipe } from './approval-rig.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

type Options = NonNullable<Parameters<typeof gateway>[0]>;
const { signal } = new AbortController();

interface Host {
  readonly rig: Rig;
  readonly member: Member;
}

async function host(
  t: ExecutionContext,
  cluster: MemoryCluster,
  name: string,
  url: string,
  options: Options = {},
): Promise<Host> {
  const dataDir = tempDir(t);
  const member = cluster.join(name, dataDir);
  const routes = [
    credentialFree({ name: 'notes', url }),
    credentialFree({ name: 'ledger', url, writes: true }),
  ];
  const rig = await Rig.start(t, { routes, ...options }, dataDir, undefined, [joining(member)]);
  member.runtime = rig.runtime;
  return { rig, member };
}

async function pair(t: ExecutionContext, of: (name: string) => Options = () => ({})) {
  const cluster = new MemoryCluster();
  const { url } = await startUpstream(t, true);
  const a = await host(t, cluster, 'a', url, of('a'));
  return { cluster, a, b: await host(t, cluster, 'b', url, of('b')) };
}

const masterKeyOf = ({ rig }: Host): string =>
  readFileSync(join(rig.dataDir, 'secrets', 'cluster-master-key'), 'utf8').trim();
const admin = (host: Host, path: string, body?: object) =>
  host.rig.rest(
    body ? 'POST' : 'GET',
    path,
    { authorization: `Bearer ${masterKeyOf(host)}` },
    body && JSON.stringify(body),
  );
/** What a key does on hosts, in one session that is begun on the first of them. */
async function caller({ rig }: Host, key: string, route = 'notes') {
  const begun = await rig.post(`/${route}/mcp`, initialize, admission(key));
  const id = begun.headers.get('mcp-session-id');
  return (on: Host, value = key): Promise<Response> =>
    on.rig.post(`/${route}/mcp`, rpc('tools/call', { name: `${route}-echo`, arguments: { text: 'x' } }), {
      ...admission(value),
      ...(id !== null && { 'mcp-session-id': id }),
    });
}
const knowsKey = ({ rig }: Host) => rig.runtime.services.actors.states('gateway.key').length === 1;
const rules = async ({ rig }: Host) =>
  (await rig.records()).flatMap(({ effects }) =>
    effects.flatMap(({ type, params }) =>
      type === 'gateway.answer' ? [(params as { rule: string }).rule] : [],
    ),
  );

test('[C13,G14,G18] a key that is made, changed, rotated or revoked on one host is so on all, in one order', async (t) => {
  const { a, b } = await pair(t);
  t.is(masterKeyOf(a), masterKeyOf(b), 'all hosts derive the same master key');
  const made = await admin(a, '/key/generate', {
    key_alias: 'laptop',
    object_permission: { mcp_servers: ['notes'] },
  });
  t.is(made.status, 200);
  const key = String(made.body.key);
  const call = await caller(a, key);
  const answered = async (on: Host, value: string) => (await call(on, value)).status;
  await until('the other host knows it', async () => (await answered(b, key)) === 200);
  const rotated = await admin(b, '/key/rotate', { key });
  const next = String(rotated.body.key);
  await until('the first host takes the new value', async () => (await answered(a, next)) === 200);
  t.is(await answered(a, key), 401);
  t.deepEqual((await rules(a)).at(-1), 'rotated_out');
  const known = a.rig.runtime.services.actors.get(keyActor, keyId(key))?.context;
  t.true(known?.presents[keyId(key)]?.hasEnded, 'whatever the clock of a host says');
  t.is((await admin(a, '/key/update', { key: next, user_id: 'ann' })).status, 200);
  const { body } = await admin(b, '/key/list?user_id=ann');
  t.is(body.keys.length, 1);
  t.is((await admin(b, '/key/delete', { key_aliases: ['laptop'] })).status, 200);
  await until('it is revoked on the first', async () => (await answered(a, next)) === 401);
  t.is((await rules(a)).at(-1), 'revoked');
});

test('[C13,G14] two hosts that give one alias, or one value, at once: the first in the order has it, the other 409', async (t) => {
  const { cluster, a, b } = await pair(t);
  // Both are sent before either host hears of the other.
  const deliver = cluster.deliverAll.bind(cluster);
  let sent = 2;
  cluster.deliverAll = () => {
    if (cluster.shared.length >= sent) deliver();
  };
  const both = await Promise.all([a, b].map((host) => admin(host, '/key/generate', { key_alias: 'desk' })));
  t.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  const refused = both.find(({ status }) => status === 409);
  t.regex(refused?.body.error.message, /The alias desk is taken by the key k_/);
  const value = 'sk-one-value-for-both-hosts';
  sent = 4;
  const same = await Promise.all(
    [a, b].map((host, index) => admin(host, '/key/generate', { key: value, key_alias: `same-${index}` })),
  );
  t.deepEqual(same.map(({ status }) => status).sort(), [200, 409]);
  t.regex(same.find(({ status }) => status === 409)?.body.error.message, /taken already/);
  const lists = await Promise.all([a, b].map((host) => admin(host, '/key/list')));
  const aliases = lists.map(({ body }) =>
    body.keys.map((one: { key_alias: string }) => one.key_alias).sort(),
  );
  t.is(aliases[0].length, 2);
  t.deepEqual(aliases[0], aliases[1]);
});

test('[C13,G6,G14] a host that is cut off changes no key, refuses what writes at once, and reads for its grace', async (t) => {
  const { a, b } = await pair(t, (name) => (name === 'b' ? {} : { isolationGraceMs: 0 }));
  const made = await admin(a, '/key/generate', {
    key_alias: 'laptop',
    object_permission: { mcp_servers: ['notes', 'ledger'] },
  });
  const key = String(made.body.key);
  await until('the other host knows it', () => knowsKey(b));
  const read = await caller(a, key);
  const write = await caller(a, key, 'ledger');
  t.deepEqual([(await read(b)).status, (await write(b)).status], [200, 200]);
  b.member.isCut = true;
  const refused = await write(b);
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '2');
  t.like(await refused.json(), {
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32_000, data: { retryAfterMs: 2_000 } },
  });
  t.is((await read(b)).status, 200, 'it reads for its grace');
  const change = await admin(b, '/key/update', { key, user_id: 'ann' });
  t.is(change.status, 503);
  t.regex(change.body.error.message, /was not delivered .* Look at the connection/);
  b.member.isCut = false;
  t.is((await write(b)).status, 200);
  a.member.isCut = true;
  t.is((await read(a)).status, 503, 'without any grace, it reads nothing either');
  t.deepEqual(await rules(a), ['host_isolated']);
});

test('[C13,G6] a host that is back and has not read what it missed refuses every call, whatever its grace', async (t) => {
  const { a, b } = await pair(t);
  const made = await admin(a, '/key/generate', { object_permission: { mcp_servers: ['notes'] } });
  await until('the other host knows it', () => knowsKey(b));
  const read = await caller(a, String(made.body.key));
  b.member.isBehind = true;
  const refused = await read(b);
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '2');
  const { error } = (await refused.json()) as { error: { message: string } };
  t.regex(error.message, /has just started or come back .* Nothing was called/);
  t.notRegex(error.message, /cut off/);
  t.deepEqual(await rules(b), ['host_behind']);
  b.member.isBehind = false;
  t.is((await read(b)).status, 200);
});

test('[C13,G18] a session begun on one host goes on at another, and one that ended is known nowhere', async (t) => {
  const { a, b } = await pair(t);
  const made = await admin(a, '/key/generate', { object_permission: { mcp_servers: ['notes'] } });
  const headers = admission(String(made.body.key));
  await until('the other host knows it', () => knowsKey(b));
  const begun = await a.rig.post('/mcp/', initialize, headers);
  const session = { ...headers, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const listed = await b.rig.post('/mcp/', rpc('tools/list'), session);
  t.is(listed.status, 200);
  t.regex(await listed.text(), /notes-echo/);
  await fetch(`${a.rig.url}/mcp/`, { method: 'DELETE', headers: session });
  await until(
    'it has ended there',
    async () => (await b.rig.post('/mcp/', rpc('tools/list'), session)).status === 404,
  );
  t.is((await a.rig.post('/mcp/', rpc('tools/list'), session)).status, 404);
});

test('[C13,G18] a session that ended stays unknown to a host that restarts, was away, or is new', async (t) => {
  const { cluster, a, b } = await pair(t);
  const made = await admin(a, '/key/generate', { object_permission: { mcp_servers: ['notes'] } });
  const key = admission(String(made.body.key));
  const sessionOf = async () => {
    const begun = await a.rig.post('/mcp/', initialize, key);
    return { ...key, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  };
  const [first, second] = [await sessionOf(), await sessionOf()];
  const status = async ({ rig }: Host, session: Record<string, string>) =>
    (await rig.post('/mcp/', rpc('ping'), session)).status;
  await until('b knows the key', async () => (await status(b, second)) === 200);
  const end = (session: Record<string, string>) =>
    fetch(`${a.rig.url}/mcp/`, { method: 'DELETE', headers: session });

  await end(first);
  await until('it has ended on the other host', async () => (await status(b, first)) === 404);
  b.member.isCut = true;
  await end(second);
  t.is(await status(b, second), 200, 'it was away');
  await b.member.missed();
  await until('it hears of it', async () => (await status(b, second)) === 404);

  await b.rig.runtime.stop('restart');
  const url = (await startUpstream(t, true)).url;
  const member = cluster.join('b', b.rig.dataDir);
  const routes = [credentialFree({ name: 'notes', url })];
  const rig = await Rig.start(t, { routes }, b.rig.dataDir, undefined, [joining(member)]);
  const c = await host(t, cluster, 'c', url);
  await c.member.missed();
  for (const one of [{ rig, member }, c]) {
    for (const session of [first, second])
      await until('it has ended', async () => (await status(one, session)) === 404);
    const still = await sessionOf();
    t.is(await status(one, still), 200, 'another one goes on');
  }
});

test('[C13,G16] a limit of calls holds for both hosts together, but for a slice of each', async (t) => {
  const { a, b } = await pair(t);
  const made = await admin(a, '/key/generate', {
    rpm_limit: 8,
    object_permission: { mcp_servers: ['notes'] },
  });
  const key = String(made.body.key);
  await until('the other host has it', () => knowsKey(b));
  const call = await caller(a, key);
  const texts: string[] = [];
  for (let tries = 0; tries < 20; tries += 1)
    for (const on of [a, b]) texts.push(await (await call(on)).text());
  const admitted = texts.filter((text) => !text.includes('Rate limit')).length;
  t.true(admitted >= 8 && admitted <= 8 + 2 * 2, `${admitted} were admitted`);
  const grants = [a, b].map(({ rig }) => {
    const [shown] = rig.runtime.services.actors.list(keyActor);
    return shown?.context.shared?.shares.rpm?.granted;
  });
  t.is(Object.keys(grants[0] ?? {}).length, 2);
  t.deepEqual(grants[0], grants[1]);
});

test('[C13,G18] a person approves on any host what waits on another, and the record there says where', async (t) => {
  const servers = { a: new Counting(), b: new Counting() };
  const { a, b } = await pair(t, (name) => ({
    publicUrl: 'https://gw.example',
    routes: [
      credentialFree({
        name: 'pages',
        server: servers[name === 'a' ? 'a' : 'b'].serve,
        toolSettings: { wipe: { approval: 'ask' } },
      }),
    ],
  }));
  const made = await admin(a, '/key/generate', {
    key_alias: 'desk',
    object_permission: { mcp_servers: ['pages'] },
  });
  const client = await a.rig.connect(t, 'pages', String(made.body.key));
  const said = wipe(client);
  const control = (host: Host, path: string, body: object) =>
    postControl(host.rig.dataDir, path, body, signal);
  const listed = async (host: Host) =>
    (
      (await control(host, '/gateway/approvals', {})).body as {
        approvals: { id: string; host?: string; arguments: string }[];
      }
    ).approvals;
  await until('it waits', async () => (await listed(a)).length === 1);
  const [request] = await listed(b);
  t.is(request?.host, 'a');
  t.regex(request?.arguments ?? '', /home/);
  // The link that an alert has works at any host.
  const term = Date.now() + 60_000;
  const sign = createHmac('sha256', Buffer.alloc(32, 'gateway approval link'));
  const mac = sign.update(`holdfast/approval/${request?.id}/${term}`).digest('base64url');
  const page = await fetch(`${b.rig.url}/call-approvals/${request?.id}?token=${term}.${mac}`);
  t.is(page.status, 200);
  t.regex(await page.text(), /desk calls <strong>wipe<\/strong> of <strong>pages<\/strong>/);
  const deciding = { id: request?.id, verdict: 'approved', by: 'ann', why: 'asked for' };
  t.is((await control(b, '/gateway/approvals/decide', deciding)).status, 200);
  t.is(await said, 'wiped home');
  t.deepEqual([servers.a.wiped, servers.b.wiped], [['home'], []]);
  const decided = (await a.rig.records()).find(({ event }) => event.type === 'DECIDED');
  t.like(decided?.event, { by: 'ann', why: 'asked for', from: 'b' });
  const again = await control(b, '/gateway/approvals/decide', deciding);
  t.like(again, { status: 409, body: { code: 'HF_GATEWAY_APPROVAL_DECIDED' } });
  const unknown = await control(b, '/gateway/approvals/decide', { ...deciding, id: 'none' });
  t.like(unknown, { status: 404, body: { code: 'HF_GATEWAY_APPROVAL_UNKNOWN' } });
  a.member.isCut = true;
  const unanswered = await control(b, '/gateway/approvals/decide', deciding);
  t.like(unanswered, { status: 503, body: { code: 'HF_GATEWAY_APPROVAL_UNANSWERED' } });
  t.regex(JSON.stringify(unanswered.body), /no answer from a/);
  t.like((await control(b, '/gateway/approvals', {})).body, { approvals: [], unanswered: ['a'] });
});

test('[C13,G18] a key whose state came from another host is known by each of its values', async (t) => {
  const { a, b } = await pair(t);
  const first = await a.rig.mint({ alias: 'old', servers: ['notes'] });
  const next = 'sk-the-second-value-of-it';
  const { actors } = a.rig.runtime.services;
  const rotated = { at: Date.now(), presented: keyId(next), overlapMs: 60_000 };
  await actors.send(keyActor, keyId(first), { type: 'KEY_ROTATED', ...rotated }).durable();
  const call = await caller(a, first);
  t.deepEqual([(await call(b)).status, (await call(b, next)).status], [401, 401]);
  t.deepEqual(await rules(b), ['unknown_key', 'unknown_key']);
  const left = { host: 'a', incarnation: '1', seq: 9, hash: '', states: actors.states('gateway.key') };
  await b.rig.runtime.services.actors.takeUp(['gateway.key'], left);
  t.is((await call(b)).status, 200);
  await until('its second value is known', async () => (await call(b, next)).status === 200);
});
