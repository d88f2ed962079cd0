import test from 'ava';
import { routerRemote } from '../../../../src/plugins/router/index.ts';
import { until } from '../../../support/until.ts';
import { ConsoleRig } from '../../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../../console/opened.ts';
import { Daemon } from './daemon.ts';

const CANARY = 'canary-c0ffee42';

test('[C15,R36] the page of a router elsewhere shows the configs that it served, and which came past its API', async (t) => {
  const daemon = await Daemon.start(t);
  const rig = await ConsoleRig.start(t, {
    others: [
      routerRemote({ url: daemon.url, channelPrefix: daemon.channelPrefix, lookMs: 100, probeMs: 50 }),
    ],
  });
  const { actors } = rig.runtime.services;
  const observed = (): any => actors.snapshot('router.observed_config/default')?.context;
  await until('the first config is read', () => observed()?.known.length === 1);
  const before = await rig.durable();
  const first = daemon.config.ncid;
  await daemon.appSaves((config) => {
    config.interface.vlan['eth1.40'].meta.name = CANARY;
  });
  await until('the save is seen', () => observed().known.length === 2);
  const { fingerprint } = observed().known.at(-1);
  daemon.editByHand((config) => {
    config.interface.vlan['eth1.40'].meta.name = `${CANARY}-by-hand`;
  });
  await until('the edit is seen', () => observed().known.at(-1).fingerprint !== fingerprint);
  const last = await rig.durable();

  const { live, opened, texts } = await shownLiveAndOpened(t, rig, [
    `/api/pages/router?at=${before}`,
    `/api/pages/router?at=${last}`,
  ]);
  t.deepEqual(opened, live);
  const [then, now]: any[] = live.map(sectionsOf);
  t.is(then.facts.facts[0].value, first);
  t.deepEqual(
    cellsOf(then.Configs).map(({ ncid, problem }) => [ncid, problem]),
    [[first, '']],
  );
  const saved = daemon.config.ncid;
  t.deepEqual(
    now.Configs.rows.map(({ status, cells }: any) => [status, cells.ncid]),
    [
      ['degraded', saved],
      [undefined, saved],
      [undefined, first],
    ],
  );
  t.regex(now.Configs.rows[0].cells.problem, /its content changed and its ncid did not/);
  t.false(texts.includes(CANARY));
});
