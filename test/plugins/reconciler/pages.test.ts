import test from 'ava';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { legActor, SAVES_KEY, savesActor } from '../../../src/plugins/reconciler/actors.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { until } from '../../support/until.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';
import { Rig } from '../router/rig.ts';

const LEG = 'eth1.10';

test('[C15,R24,R26] the page of legs shows drift while it lasts, the last resync, a pause with its end, and what saves dropped', async (t) => {
  const rig = await Rig.start(t, { plugins: [reconciler(), consolePlugin({ port: 0 })] });
  const { actors } = rig.runtime.services;
  const console = new ConsoleRig(rig.runtime, rig.dataDir, []);
  t.teardown(() => console.dispatcher.destroy());
  const legs = () => actors.states('reconciler.leg');
  const areWhole = () =>
    legs().length === 5 &&
    legs().every(({ value, effects }) => value === 'whole' && Object.keys(effects).length === 0);
  await until('every leg is whole', areWhole);
  const whole = await console.durable();
  await console.login();
  const { status } = await console.send('/api/actions/reconciler-resync', { method: 'POST' });
  t.is(status, 200);
  const config = await rig.active();
  const { [LEG]: leg } = config.interface.vlan;
  const wanted = leg.ipv6;
  delete leg.ipv6;
  t.is((await rig.set(config)).status, 200);
  const isHealed = () => actors.get(legActor, LEG)?.context.healed === 1;
  await until('it is put right', () => isHealed() && areWhole());
  await until(
    'what was dropped is seen',
    () => (actors.get(savesActor, SAVES_KEY)?.context.dropped.length ?? 0) > 0,
  );
  const pausedAt = Date.now();
  actors.deliver('reconciler.unit/ula-reconcile', { type: 'PAUSE', at: pausedAt, by: 'ann', forMs: 600_000 });
  const last = await console.durable();
  const { records } = await console.ask('/api/records?event=ADDED&limit=1');
  const during = records[0].seq - 1;

  const { live, opened, texts } = await shownLiveAndOpened(t, console, [
    `/api/pages/legs?at=${whole}`,
    `/api/pages/legs?at=${during}`,
    `/api/pages/legs?at=${last}`,
  ]);
  t.deepEqual(opened, live);
  const [before, drifted, after]: any[] = live.map(sectionsOf);
  const rowOf = (sections: any) =>
    sections.Legs.rows.find(({ actor }: any) => actor === `reconciler.leg/${LEG}`);
  const fact = (sections: any, wantedLabel: string) =>
    sections.facts.facts.find(({ label }: any) => label === wantedLabel);
  t.like(rowOf(before), { cells: { wanted: wanted[0] ?? wanted, healed: 0 } });
  t.like(rowOf(drifted), { status: 'degraded', cells: { state: 'missing' } });
  t.is(typeof rowOf(drifted).cells.since, 'number');
  t.like(rowOf(after).cells, { healed: 1, since: null });
  for (const { status: mark, cells } of after.Legs.rows)
    t.is(mark, cells.state === 'whole' ? 'ok' : 'unknown', 'well is a leg whose link was seen, too');
  t.not(fact(before, 'last resync').value, 'requested');
  t.like(fact(after, 'last resync'), { value: 'requested' });
  t.like(fact(before, 'reconciler'), { value: 'was never paused' });
  t.like(fact(after, 'reconciler'), { value: 'paused by ann', status: 'degraded', since: pausedAt });
  t.true(Math.abs(fact(after, 'reconciler').until - pausedAt - 600_000) < 10_000);
  t.is(before['What saves of others dropped'], undefined);
  t.like(cellsOf(after['What saves of others dropped'])[0], {
    count: 1,
    paths: `interface.vlan.${LEG}.ipv6`,
  });
  t.true(texts.length > 0);
});
