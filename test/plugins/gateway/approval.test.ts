import { cpSync, lstatSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { routesPage } from '../../../src/plugins/gateway/console-page.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import { ApprovalRig, Counting, LongWaits, wipe } from './approval-rig.ts';
import { admission, initialize, rpc } from './rig.ts';
import { until } from './talkers.ts';

test('[G6,G23] a call waits until a person approves it, its client hears so meanwhile, and it goes through once', async (t) => {
  const on = await ApprovalRig.open(t, { clock: new LongWaits() });
  const client = await on.connect(t);
  const heard: { message?: string | undefined; progress: number }[] = [];
  const beganAt = performance.now();
  const call = wipe(client, 'home', { onprogress: (progress) => void heard.push(progress) });
  const [asked] = await on.waiting(t);
  await new Promise<void>((resolve) => systemClock.after(250, resolve));
  t.like(asked, {
    alias: 'desk',
    route: 'pages',
    tool: 'wipe',
    arguments: '{\n  "page": "home"\n}',
    callers: 1,
  });
  await until(t, 'the client hears of it', () => heard.length === 1);
  t.regex(heard[0]?.message ?? '', new RegExp(`approve it \\(${asked?.id}\\), for 900 s`));
  t.is(heard[0]?.progress, -900, 'progress of the upstream is greater');
  t.deepEqual(on.server.wiped, [], 'its server has not heard of it');
  const { content } = await client.callTool({ name: 'pages-read', arguments: {} });
  t.like(content, [{ text: 'read' }], 'a tool that needs nobody is called meanwhile');

  t.like(await on.decide(asked?.id ?? '', 'approved'), { status: 200, body: { state: 'approved' } });
  t.is(await call, 'wiped home');
  const longest = performance.now() - beganAt - 250;
  t.deepEqual(on.server.wiped, ['home']);
  const calls = (await on.rig.ended(4)).filter(({ method }) => method === 'tools/call');
  for (const { ms } of calls)
    t.true(ms <= longest, `${ms} ms are counted, without the wait at most ${longest}`);
  const again = await on.decide(asked?.id ?? '', 'denied');
  t.like(again, { status: 409, body: { code: 'HF_GATEWAY_APPROVAL_DECIDED' } });
  t.regex((again.body as any).what, /it was approved, and the call was made \(by ann/);
  t.like(await on.decide('nosuch', 'approved'), {
    status: 404,
    body: { code: 'HF_GATEWAY_APPROVAL_UNKNOWN' },
  });
  const second = wipe(client);
  const [another] = await on.waiting(t);
  t.not(another?.id, asked?.id, 'an approval is good for one call: the same one asks anew');
  await on.decide(another?.id ?? '', 'denied', 'enough');
  t.regex(await second, /^refused: Error: The call was denied by ann: enough/);

  const records = (await on.rig.records()).filter(({ actor }) => actor.startsWith('gateway.approval/'));
  t.deepEqual(
    records.map(({ event }) => event.type).filter((type) => !/^init|^effect|^xstate/.test(type)),
    ['ASKED', 'DECIDED', 'CLAIMED', 'DECIDED', 'ASKED', 'DECIDED'],
  );
  const uid = process.getuid?.();
  const decided = records.find(({ event }) => event.type === 'DECIDED');
  t.like(decided, { uid, event: { by: 'ann', why: 'said so' } }, 'the kernel says whose process decided');
});

test('[G6,G16] a denial says who and why, stands for the same call alone, and costs nothing', async (t) => {
  const server = new Counting();
  const routes = [
    credentialFree({ name: 'pages', server: server.serve, approval: 'ask', costs: { wipe: 1 } }),
  ];
  const on = await ApprovalRig.open(t, { server, options: { routes } });
  const client = await on.connect(t);
  const call = wipe(client);
  const [asked] = await on.waiting(t);
  await on.decide(asked?.id ?? '', 'denied', 'ask bob: token=canary-4711');
  const said = await call;
  t.regex(said, new RegExp(`^refused: Error: The call was denied by ann: ask bob: .*\\(${asked?.id}\\)`));
  t.notRegex(said, /canary/, 'what looks like a secret is not told');
  t.is(await wipe(client), said, 'the same call is refused at once');
  const other = wipe(client, 'other');
  const [another] = await on.waiting(t);
  t.not(another?.id, asked?.id);
  const { actors } = on.rig.runtime.services;
  const types = ['gateway.approval', 'gateway.routes', 'gateway.route_health'];
  const states = new Map(types.flatMap((type) => actors.states(type)).map((state) => [state.ref, state]));
  const { signal } = new AbortController();
  const records = async () => ({ records: [], more: false });
  const moment = { seq: 0, time: 0, isNow: true, states, inputs: {}, signal, records };
  const sections = await routesPage.data(moment);
  const shown = sections.find(({ title }) => title === 'Calls that wait for approval');
  t.like(
    shown?.kind === 'table' && shown.rows.map(({ cells }) => cells),
    [{ id: another?.id, by: 'desk', call: 'pages wipe' }],
    'the console shows what waits, and no call that is decided',
  );
  await on.decide(another?.id ?? '', 'approved');
  t.is(await other, 'wiped other');
  const ended = (await on.rig.ended(5)).filter(({ method }) => method === 'tools/call');
  t.deepEqual(
    ended.map(({ outcome, refusal }) => refusal ?? outcome),
    ['denied', 'denied', 'ok'],
  );
  const key = on.rig.runtime.services.actors.states('gateway.key')[0]?.context as { spend: number };
  t.is(key.spend, 1, 'the one call that was made');
  t.is(await on.divergence(), undefined);
});

test('[G6,C3] what nobody decides is refused at the deadline, a denial ends with it, and clients hear of the wait at a bounded rate', async (t) => {
  const clock = new LongWaits();
  const on = await ApprovalRig.open(t, { clock, options: { approvals: { deadlineMs: 60_000 } } });
  const client = await on.connect(t);
  const heard: number[] = [];
  const call = wipe(client, 'home', { onprogress: ({ progress }) => void heard.push(progress) });
  const silent = on.rig.post(
    '/pages/mcp',
    rpc('tools/call', { name: 'pages-wipe', arguments: { page: 'quiet' } }),
    await sessionOf(on),
  );
  await on.waiting(t, 2);
  await clock.advance(35_000);
  await until(t, 'the client hears it', () => heard.length === 4);
  t.deepEqual(heard, [-60, -50, -40, -30], 'each 10 s, and growing');
  await clock.advance(25_000);
  t.regex(await call, /^refused: Error: Nobody approved the call in time, so it was not made/);
  const events = await (await silent).text();
  t.regex(
    events,
    /^(?:: waits for approval\n\n){5,6}event: message\ndata: .*Nobody approved/,
    'a comment each 10 s',
  );

  const second = wipe(client);
  const [asked] = await on.waiting(t);
  await on.decide(asked?.id ?? '', 'denied', 'no');
  await second;
  await clock.advance(59_000);
  t.regex(await wipe(client), /denied by ann/);
  await clock.advance(1_000);
  const third = wipe(client);
  const [anew] = await on.waiting(t);
  t.not(anew?.id, asked?.id, 'after the deadline it is asked anew');
  await on.decide(anew?.id ?? '', 'approved');
  t.is(await third, 'wiped home');
  t.deepEqual(on.server.wiped, ['home']);
  t.is(await on.divergence(), undefined);
});

test('[G6,C5] a crash while a call waits loses nothing: the same call attaches to its request and goes through once', async (t) => {
  const server = new Counting();
  const first = await ApprovalRig.open(t, { server });
  const lost = wipe(await first.connect(t)).catch(() => 'lost');
  const alsoLost = wipe(await first.connect(t), 'second').catch(() => 'lost');
  const before = await first.waiting(t, 2);
  const dataDir = await crashed(t, first);
  await first.rig.runtime.stop('test');
  await Promise.all([lost, alsoLost]);

  const on = await ApprovalRig.open(t, { server, dataDir }, first.key);
  const shown = await on.list();
  t.deepEqual(
    shown.map(({ id, state, arguments: given, callers }) => ({ id, state, given, callers })),
    before.map(({ id, arguments: given }) => ({ id, state: 'waiting', given, callers: 0 })),
  );
  const idOf = (page: string) => shown.find(({ arguments: given }) => given?.includes(page))?.id ?? '';
  const client = await on.connect(t);
  const attached = wipe(client);
  const callersOf = async (id: string) => (await on.list()).find((one) => one.id === id)?.callers;
  await read(
    'it attaches',
    () => callersOf(idOf('home')),
    (callers) => callers === 1,
  );
  t.is((await on.waiting(t, 2)).length, 2, 'nothing new is asked');
  await on.decide(idOf('home'), 'approved');
  t.is(await attached, 'wiped home');
  await on.decide(idOf('second'), 'approved');
  t.deepEqual(server.wiped, ['home'], 'an approval alone calls nothing');
  await on.rig.runtime.stop('test');

  const last = await ApprovalRig.open(t, { server, dataDir }, first.key);
  const late = await last.connect(t);
  t.is(await wipe(late, 'second'), 'wiped second', 'what was approved meanwhile goes through at once');
  const again = wipe(late, 'second');
  const [asked] = await last.waiting(t);
  t.deepEqual(server.wiped, ['home', 'second'], 'and once');
  await last.decide(asked?.id ?? '', 'denied');
  await again;
  t.is(await last.divergence(), undefined);
});

test('[G6,C2] an approval is taken before the upstream is asked: after a crash in between it is asked anew', async (t) => {
  const server = new Counting();
  const first = await ApprovalRig.open(t, { server });
  const answered = Promise.withResolvers<void>();
  server.answer = answered.promise;
  const call = wipe(await first.connect(t));
  const [asked] = await first.waiting(t);
  await first.decide(asked?.id ?? '', 'approved');
  await until(t, 'its server has it', () => server.wiped.length === 1);
  const dataDir = await crashed(t, first);
  answered.resolve();
  t.is(await call, 'wiped home');
  const on = await ApprovalRig.open(t, { server, dataDir }, first.key);
  const again = wipe(await on.connect(t));
  const [anew] = await on.waiting(t);
  t.not(anew?.id, asked?.id);
  t.is(server.wiped.length, 1);
  await on.decide(anew?.id ?? '', 'denied');
  await again;
});

test('[G6,G23] a client that cancels ends its call and not the request; of two same calls one takes the approval', async (t) => {
  const on = await ApprovalRig.open(t);
  const client = await on.connect(t);
  const leaving = new AbortController();
  const given = wipe(client, 'home', { signal: leaving.signal });
  const [asked] = await on.waiting(t);
  leaving.abort();
  await t.throwsAsync(given);
  const callers = async () => (await on.list())[0]?.callers;
  await read('nobody waits', callers, (count) => count === 0);
  t.like((await on.list())[0], { id: asked?.id, state: 'waiting', callers: 0 });

  const both = [wipe(client), wipe(await on.connect(t))];
  await read('both wait', callers, (count) => count === 2);
  await on.decide(asked?.id ?? '', 'approved');
  const said = (await Promise.all(both)).toSorted();
  t.regex(said[0] ?? '', /^refused: Error: .* another call that is the same took the approval/);
  t.is(said[1], 'wiped home');
  t.deepEqual(on.server.wiped, ['home']);
});

test('[G6] so many requests wait of one key, and so many at all; a call without an id is refused', async (t) => {
  const on = await ApprovalRig.open(t, { options: { approvals: { maxWaiting: 3, maxWaitingPerKey: 2 } } });
  const client = await on.connect(t);
  const held = [wipe(client, '1'), wipe(client, '2')];
  const asked = await on.waiting(t, 2);
  t.regex(await wipe(client, '3'), /^refused: Error: Too many calls of this key wait for a person/);
  const other = await on.rig.connect(t, 'pages', await on.rig.mint({ alias: 'other', servers: ['pages'] }));
  held.push(wipe(other, '1'));
  const all = await on.waiting(t, 3);
  t.is(all.length, 3, 'the same call of another key is another one');
  t.regex(await wipe(other, '2'), /^refused: Error: Too many calls wait for a person/);
  for (const { id } of all) await on.decide(id, 'approved');
  t.deepEqual((await Promise.all(held)).toSorted(), ['wiped 1', 'wiped 1', 'wiped 2']);
  t.is(asked.length, 2);

  const notification = {
    jsonrpc: '2.0',
    method: 'tools/call',
    params: { name: 'pages-wipe', arguments: { page: 'x' } },
  };
  t.is((await on.rig.post('/pages/mcp', notification, await sessionOf(on))).status, 400);
  t.is(on.server.wiped.length, 3);
});

test('[G6,G19] a revoked key withdraws its request, and what a call asks is in no record and no line of the log', async (t) => {
  const on = await ApprovalRig.open(t);
  const secret = 'canary-page-4711';
  const call = wipe(await on.connect(t), secret).catch(String);
  const [asked] = await on.waiting(t);
  t.regex(asked?.arguments ?? '', /canary-page/);
  t.deepEqual(await on.rig.traces(secret), []);
  const revoked = await on.rig.admin('POST', '/key/delete', { keys: [on.key] });
  t.is(revoked.status, 200);
  await call;
  await until(
    t,
    'it is withdrawn',
    () => on.rig.runtime.services.actors.states('gateway.approval')[0]?.value === 'withdrawn',
  );
  t.is((await on.list())[0]?.arguments, undefined, 'its arguments are not kept');
  t.like(await on.decide(asked?.id ?? '', 'approved'), { status: 409 });
  t.deepEqual(on.server.wiped, []);
});

/** @returns a folder as a process leaves it behind that is killed now */
async function crashed(t: ExecutionContext, { rig }: ApprovalRig): Promise<string> {
  const { log } = rig.runtime.services;
  // A copy of what is written meanwhile would be none that a crash leaves.
  for (let seq = 0; seq !== log.lastSeq(); ) {
    seq = log.lastSeq();
    await rig.records();
    await new Promise<void>((resolve) => systemClock.after(50, resolve));
  }
  const dataDir = tempDir(t);
  cpSync(rig.dataDir, dataDir, { recursive: true, filter: (path) => !lstatSync(path).isSocket() });
  return dataDir;
}

async function sessionOf(on: ApprovalRig): Promise<Record<string, string>> {
  const opened = await on.rig.post('/pages/mcp', initialize, admission(on.key));
  await opened.text();
  return { ...admission(on.key), 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
}
