import test from 'ava';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';
import { Rig } from './rig.ts';

const CANARY = 'canary-51d2aa90';
const LEG = 'eth1.30';

test("[C15,R6,R31] the router's pages show the pending change with its end, every write, and values of a running instance alone", async (t) => {
  const clock = new VirtualClock(Date.now());
  const rig = await Rig.start(t, { clock, plugins: [consolePlugin({ port: 0 })] });
  const console = new ConsoleRig(rig.runtime, rig.dataDir, []);
  t.teardown(() => console.dispatcher.destroy());
  const active = await rig.active();
  const stale = active.ncid;
  const first = structuredClone(active);
  first.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
  first.pppoe = { isp: { password: CANARY } };
  const opened = (await rig.set(first, { transactionOp: 'append', transID: 't1' })).body.ncid;
  await rig.pass(20_000);
  const during = await console.durable();
  const shown = await console.ask('/api/pages/router');
  t.true(shown.time > clock.now() - 60_000);
  const [pending] = shown.sections;
  t.like(
    pending.facts.find(({ label }: any) => label === 'pending change'),
    { value: 't1, by 127.0.0.1', status: 'degraded' },
  );
  const until = pending.facts.find(({ label }: any) => label === 'reverts unless it is committed');
  t.is(until.until - shown.time, 100_000, 'it counts down to the end of its window');
  const touched = sectionsOf(shown)['What the pending change touches'];
  t.deepEqual(cellsOf(touched), [{ path: `interface.vlan.${LEG}.ipv4` }, { path: 'pppoe' }]);

  const versions = sectionsOf(await console.ask('/api/pages/router-versions'));
  const changes = versions[`From ${stale} to ${opened}`].changes;
  t.deepEqual(changes[0], { path: `interface.vlan.${LEG}.ipv4`, from: '10.77.30.1/24', to: '10.77.31.1/24' });
  t.like(changes[1], { path: 'pppoe.isp.password' });
  t.regex(changes[1].to, /^secret fp_[0-9a-f]{12}$/);

  await rig.set({}, { transactionOp: 'commit', transID: 't1' });
  const refused = await rig.set(active, {});
  t.is(refused.status, 400);
  const second = { ...first, domain: 'home' };
  const again = await rig.set({ ...second, ncid: opened }, { transactionOp: 'append', transID: 't2' });
  t.is(again.status, 200, JSON.stringify(again.body));
  const late = again.body.ncid;
  await rig.pass(120_000);
  await rig.settled();
  const last = await console.durable();

  const chosen = sectionsOf(await console.ask(`/api/pages/router-versions?version=${late}&against=${stale}`));
  t.is(chosen[`From ${stale} to ${late}`].changes.length, 3);
  const then = sectionsOf(await console.ask(`/api/pages/router-versions?at=${during}`));
  t.deepEqual(
    cellsOf(then['Versions that were there, and are kept']).map(({ ncid }) => ncid),
    [opened, stale],
  );
  t.deepEqual(
    sectionsOf(await console.ask('/api/pages/router-versions?version=nowhere')).Changes.text,
    'There is no such version.',
  );
  const { pages } = await console.ask('/api/pages');
  t.true(pages.some(({ name }: any) => name === 'router-versions'));

  const both = await shownLiveAndOpened(t, console, [
    `/api/pages/router?at=${last}`,
    `/api/pages/router?at=${during}`,
  ]);
  t.deepEqual(both.opened, both.live);
  const [now, past] = both.live.map(sectionsOf);
  t.like(
    now?.facts.facts.find(({ label }: any) => label === 'pending change'),
    { value: 'none', status: 'ok' },
  );
  t.deepEqual(
    now?.Writes.rows.map(({ status, cells: { what, who, paths } }: any) => [status, what, who, paths]),
    [
      [undefined, 'reverts t2: its window was over', 'holdfast', 'domain'],
      ['degraded', 'the window of the pending change is over', 'holdfast', ''],
      [undefined, 'changes within t2', '127.0.0.1', 'domain'],
      ['degraded', 'saves', '127.0.0.1', ''],
      [undefined, 'commits t1', '127.0.0.1', ''],
      [undefined, 'changes within t1', '127.0.0.1', `interface.vlan.${LEG}.ipv4, pppoe`],
    ],
  );
  t.is(cellsOf(now?.Writes)[3].problem, 'ncid not match');
  t.is(past?.Writes.rows.length, 1);
  t.is(
    past?.facts.facts.find(({ label }: any) => label.startsWith('reverts unless')).until - both.live[1].time,
    120_000,
  );
  const texts = JSON.stringify([shown, versions, chosen, then, both.texts]);
  t.false(texts.includes(CANARY));
});
