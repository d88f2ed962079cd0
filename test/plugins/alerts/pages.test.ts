import test from 'ava';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { status, webhook } from '../../support/webhook.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';
import { rig } from './rig.ts';

const MINUTE = 60_000;

test('[C15,O16,O17] the pages of alerts and monitors show who is told when and next, and the beats of a monitor', async (t) => {
  const [phone, boss] = await Promise.all([webhook(t), webhook(t)]);
  const alerts = await rig(
    t,
    {
      receivers: {
        phone: { url: phone.url, batchSeconds: 1 },
        boss: { url: boss.url, batchSeconds: 1 },
        nobody: {},
      },
      routes: [{ steps: [{ to: ['phone'] }, { to: ['boss'], after: '15m' }] }],
      rules: [],
    },
    {
      plugins: [
        consolePlugin({ port: 0 }),
        uptimeMonitor({
          port: 0,
          monitors: [
            { name: 'bell', interval: 60, retries: 0 },
            { name: 'gate', interval: 3_600 },
          ],
        }),
      ],
    },
  );
  const { clock, runtime } = alerts;
  const console = new ConsoleRig(runtime, alerts.dir, []);
  t.teardown(() => console.dispatcher.destroy());
  const moment = async () => {
    await alerts.settled();
    return console.durable();
  };
  alerts.raise('store.full', 'firing');
  await alerts.settled();
  const begun = clock.now();
  await alerts.pass(1);
  await alerts.until('the phone has it', () => phone.received.length === 1);
  await alerts.settled();
  const bell = 'uptime-monitor.monitor/bell';
  for (const [up, ping] of [
    [true, 40],
    [true, 90],
    [false, 3],
  ] as const) {
    const beat = { type: 'BEAT', at: clock.now(), up, msg: up ? 'rang' : 'it is <b>stuck</b>', ping };
    runtime.services.actors.deliver(bell, beat);
    await alerts.pass(10);
  }
  const told = await moment();
  await alerts.ask('ack', { alert: 'store.full', forMs: 10 * MINUTE, by: 'ann' });
  await alerts.ask('silence', { pattern: 'lamp.*', forMs: 60 * MINUTE, by: 'ann' });
  const acknowledgedAt = clock.now();
  const acknowledged = await moment();
  boss.behave(status(500, 'broken'));
  await alerts.pass(11 * 60, 30);
  await alerts.until('the boss was tried', () => boss.received.length > 0);
  const failing = await moment();

  const { live, opened, texts } = await shownLiveAndOpened(t, console, [
    ...[told, acknowledged, failing].map((at) => `/api/pages/alerts?at=${at}`),
    `/api/pages/monitors?at=${told}`,
    `/api/pages/monitors?at=${told}&monitor=gate`,
    `/api/pages/monitors?at=${told}&monitor=none`,
  ]);
  t.deepEqual(opened, live);
  const [first, second, third, monitors, gate, none] = live.map(sectionsOf);
  const ladder = (sections: any) =>
    sections['Who is told, step by step'].rows
      .filter(({ cells }: any) => cells.alert === 'store.full')
      .map(({ status: mark, cells }: any) => [cells.step, cells.who, cells.how, mark, cells.at]);
  const [taken, next] = ladder(first);
  t.deepEqual(taken.slice(0, 4), ['1 of 2', 'phone', 'was told', 'ok']);
  t.true(taken[4] >= begun && taken[4] <= begun + 2_000);
  t.deepEqual(next.slice(0, 4), ['2 of 2', 'boss', 'next', undefined]);
  t.true(
    Math.abs(next[4] - (begun + 15 * MINUTE)) < 2_000,
    'the next step is due 15 minutes after the first',
  );
  t.deepEqual(ladder(second)[1].slice(0, 3), ['2 of 2', 'boss', 'after the time of ann']);
  t.is(ladder(second)[1][4], acknowledgedAt + 10 * MINUTE);
  t.deepEqual(ladder(third)[1].slice(0, 4), ['2 of 2', 'boss', 'was not reached yet', 'degraded']);
  t.is(ladder(third)[2][0], 'reminder');
  t.like(cellsOf(second?.Silences)[0], { pattern: 'lamp.*', by: 'ann', until: acknowledgedAt + 60 * MINUTE });

  const receivers = (sections: any) =>
    Object.fromEntries(sections.Receivers.rows.map(({ status: mark, cells }: any) => [cells.receiver, mark]));
  t.deepEqual(receivers(first), { phone: 'ok' }, 'of a receiver that was sent nothing nothing is shown');
  t.is(receivers(third).boss, 'failing');

  const rows: any[] = monitors?.table.rows;
  t.deepEqual(
    rows.map(({ status: mark, cells }) => [cells.monitor, cells.state, mark]),
    [
      ['bell', 'down', 'failing'],
      ['gate', 'waiting', 'unknown'],
    ],
    'a monitor that never had a beat is not well',
  );
  t.regex(rows[0].cells.why, /the sender says it is down/);
  t.deepEqual(
    monitors?.['Latency of bell'].series[0].points.map(([, value]: any) => value),
    [40, 90, 3],
  );
  const series: any[] = monitors?.['Beats of bell'].series;
  t.deepEqual(
    series.map(({ status: mark, points }: any) => [mark, points.map(([, value]: any) => value)]),
    [
      ['ok', [1, 1, 0]],
      ['failing', [0, 0, 1]],
    ],
  );
  t.deepEqual(
    cellsOf(monitors?.['The last beats of bell']).map(({ up, msg }) => [up, msg]),
    [
      ['down', 'it is <b>stuck</b>'],
      ['up', 'rang'],
      ['up', 'rang'],
    ],
  );
  t.deepEqual(
    cellsOf(monitors?.['Changes of bell']).map(({ to }) => to),
    ['down', 'up'],
  );
  t.deepEqual(gate?.['The last beats of gate'].rows, []);
  t.is(none?.text.text, 'There is no such monitor.');
  for (const { url } of [phone, boss])
    t.false(texts.includes(new URL(url).pathname), 'no address of a receiver is shown');
});
