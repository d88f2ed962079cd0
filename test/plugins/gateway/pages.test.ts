import test from 'ava';
import { standingOf } from '../../../src/plugins/console/api/standing.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { routesPage } from '../../../src/plugins/gateway/console-page.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

test('[C15,G16] the pages of keys and calls show who called what, what became of it, and no value of a key', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(
    t,
    { routes: [credentialFree({ name: 'repo_wiki', url: upstream.url })] },
    undefined,
    undefined,
    [consolePlugin({ port: 0 })],
  );
  const desk = await rig.mint({ alias: 'desk', servers: ['repo_wiki'], rpmLimit: 1, owner: 'ann' });
  const guest = await rig.mint({ alias: 'guest', servers: [] });
  const client = await rig.connect(t, 'repo_wiki', desk);
  const fails = { name: 'repo_wiki-fail', arguments: {} };
  t.true((await client.callTool(fails)).isError);
  await rig.whenEnded('tools/call');
  const console = new ConsoleRig(rig.runtime, rig.dataDir, []);
  t.teardown(() => console.dispatcher.destroy());
  const before = await console.durable();

  t.true((await client.callTool(fails)).isError, 'over the limit of a minute');
  const first = await rig.post('/repo_wiki/mcp', initialize, admission(guest));
  const session = { ...admission(guest), 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await rig.post('/repo_wiki/mcp', rpc('tools/call', { name: 'repo_wiki-echo' }), session);
  t.is((await rig.post('/repo_wiki/mcp', initialize)).status, 401);
  const { actors } = rig.runtime.services;
  const rotated = {
    type: 'KEY_ROTATED',
    at: Date.now(),
    presented: keyId('sk-new'),
    overlapMs: 3_600_000,
  } as const;
  await actors.send(keyActor, keyId(desk), rotated).durable();
  await actors.send(keyActor, keyId(guest), { type: 'KEY_REVOKED', at: Date.now() }).durable();
  await client.close();
  await rig.ended((await rig.records()).filter(({ event }) => event.type === 'CALL').length);
  const last = await console.durable();

  const page = (name: string, at: number, inputs = '') => `/api/pages/${name}?at=${at}${inputs}`;
  const { live, opened, texts } = await shownLiveAndOpened(t, console, [
    page('gateway-keys', last),
    page('gateway-calls', last),
    page('gateway-calls', last, '&outcome=refused&key=desk'),
    page('gateway-calls', last, '&route=elsewhere'),
    page('gateway-keys', before),
    page('gateway-calls', before),
  ]);
  t.deepEqual(opened, live, 'the folder shows the same without an instance');
  const [keys, calls, refused, elsewhere, keysBefore, callsBefore] = live.map(sectionsOf);
  const keyRows: any[] = keys?.table.rows.toSorted((a: any, b: any) =>
    a.cells.alias < b.cells.alias ? -1 : 1,
  );
  t.like(keyRows[0], { status: 'ok', page: { inputs: { key: 'desk' } } });
  t.like(keyRows[0].cells, {
    ...{ alias: 'desk, of ann', state: 'active', servers: 'repo_wiki', refused: 1, rotations: 1 },
    ...{ limits: '1 call a minute', oldUntil: rotated.at + rotated.overlapMs },
  });
  t.is(keyRows[1].cells.state, 'revoked');
  t.false('status' in keyRows[1], 'a revoked key is neither well nor unwell');
  t.is(cellsOf(keysBefore?.table).find(({ alias }) => alias === 'guest')?.state, 'active');

  const shown = (section: any) =>
    section.rows.map(({ status, cells: { by, method, tool, outcome } }: any) => [
      status,
      by,
      method,
      tool,
      outcome,
    ]);
  const ofTools = shown(calls?.Calls).filter(([, , method]: string[]) => method === 'tools/call');
  t.deepEqual(ofTools, [
    ['degraded', 'guest', 'tools/call', 'repo_wiki-echo', 'refused: not entitled'],
    ['degraded', 'desk', 'tools/call', 'repo_wiki-fail', 'refused: rate limited'],
    ['failing', 'desk', 'tools/call', 'repo_wiki-fail', 'tool error'],
  ]);
  t.true(
    shown(calls?.Calls).some(([status, , method]: string[]) => status === 'ok' && method === 'initialize'),
  );
  t.true(
    shown(calls?.Calls).some(
      ([, by, , , outcome]: string[]) => by === 'no known key' && outcome === 'refused: no key',
    ),
  );
  t.deepEqual(shown(refused?.Calls), [
    ['degraded', 'desk', 'tools/call', 'repo_wiki-fail', 'refused: rate limited'],
  ]);
  t.deepEqual(elsewhere?.Calls.rows, []);
  const rules = Object.fromEntries(
    cellsOf(calls?.['Refusals by rule']).map(({ rule, ...counts }) => [rule, counts]),
  );
  t.like(rules, { 'rate limited': { read: 1, ever: null }, 'no key': { read: 1, ever: 1 } });
  t.is(rules['not entitled'].read, 2, 'the session of a key without routes begins with a refusal, too');
  t.deepEqual(
    shown(callsBefore?.Calls).filter(([, , method]: string[]) => method === 'tools/call'),
    [['failing', 'desk', 'tools/call', 'repo_wiki-fail', 'tool error']],
    'a past moment has no later call',
  );
  for (const value of [desk, guest, 'sk-new']) t.false(texts.includes(value));
});

test('[C15] of a log without a gateway the page of its routes says nothing to be well', async (t) => {
  const { signal } = new AbortController();
  const records = async () => ({ records: [], more: false });
  const moment = { seq: 9, time: 0, isNow: false, states: new Map(), inputs: {}, signal, records };
  t.is(standingOf(await routesPage.data(moment)), undefined);
});
