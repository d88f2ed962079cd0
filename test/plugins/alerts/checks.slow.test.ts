import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import type { ColumnarDatabase } from '../../../src/core/contracts/columnar-database.ts';
import type { CheckContext } from '../../../src/core/host/plugin/diagnosis.ts';
import { alertsChecks } from '../../../src/plugins/alerts/checks.ts';
import { alertsOptions, escalationFor } from '../../../src/plugins/alerts/options.ts';
import { show } from '../../../src/plugins/alerts/show.ts';
import type { AlertView } from '../../../src/plugins/alerts/view.ts';
import { ColumnarError } from '../../../src/plugins/columnar/errors.ts';
import { tempDir } from '../../support/temp.ts';
import { webhook } from '../../support/webhook.ts';
import { type Options, rig } from './rig.ts';

const { signal } = new AbortController();

const look = async (options: Options, context: CheckContext) => {
  const checks = alertsChecks(alertsOptions.parse(options));
  const found = await Promise.all(checks.map(async ({ name, run }) => [name, await run(context)] as const));
  return Object.fromEntries(found);
};

test('[O28] monitors that are DOWN go to cluster-edge and all else to cluster-infra, as it comes', (t) => {
  const { routes } = alertsOptions.parse({});
  const told = (name: string) => escalationFor(routes, name, 'critical').steps.flatMap(({ to }) => to);
  t.deepEqual(told('uptime-monitor.down'), ['cluster-edge']);
  t.deepEqual(told('rule.nas-backup-failed'), ['cluster-infra']);
  t.deepEqual(told('rule.nas-backup-missing'), ['cluster-infra']);
});

test('[O17,O28] doctor connects to each receiver, sends nothing, and shows no word of an address', async (t) => {
  const there = await webhook(t);
  const plain = createServer((socket) => socket.end('this is no TLS\n'));
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  t.teardown(() => plain.close());
  const dir = tempDir(t);
  const file = join(dir, 'readable-by-all');
  writeFileSync(file, there.url, { mode: 0o644 });
  const options: Options = {
    receivers: {
      there: { url: there.url },
      nowhere: {},
      away: { url: 'http://127.0.0.1:1/canary-4711' },
      tls: { url: `https://127.0.0.1:${(plain.address() as AddressInfo).port}/canary-4711` },
      open: { urlFile: file },
    },
    routes: [{ steps: [{ to: ['there'] }] }],
    rules: [],
  };
  const check = async (context: CheckContext) => {
    const found = await look(options, context);
    t.deepEqual(Object.fromEntries(Object.entries(found).map(([name, { state }]) => [name, state])), {
      'alerts.receiver.there': 'ok',
      'alerts.receiver.nowhere': 'warn',
      'alerts.receiver.away': 'fail',
      'alerts.receiver.tls': 'fail',
      'alerts.receiver.open': 'fail',
      'alerts.rules': context.running ? 'unknown' : 'warn',
    });
    t.regex(found['alerts.receiver.nowhere']?.remedy ?? '', /HOLDFAST_ALERTS_NOWHERE_URL, /);
    t.regex(found['alerts.receiver.away']?.found ?? '', /ECONNREFUSED/);
    t.notRegex(JSON.stringify(found), /canary/);
  };
  await check({ dataDir: dir, signal });
  const alerts = await rig(t, options);
  await check({ dataDir: alerts.dir, signal, running: { surfaces: {}, facts: {} } });
  t.is(there.received.length, 0);
});

test('[O17] doctor names the rules that can not look', async (t) => {
  const rule = {
    title: 'A rule',
    measure: { table: 'gauge', metric: 'a.b' },
    above: 0,
    window: '1h',
    every: '1h',
    onNoData: 'ok',
  } as const;
  const options: Options = { receivers: {}, routes: [], rules: [{ ...rule, name: 'a-rule' }] };
  const alerts = await rig(t, options);
  await alerts.settled();
  const found = await look(options, { dataDir: alerts.dir, signal, running: { surfaces: {}, facts: {} } });
  t.like(found['alerts.rules'], {
    state: 'fail',
    found: 'a-rule cannot be evaluated: there is no columnar database',
  });
});

test('[O17] rules that could be evaluated and cannot any more are unknown, and after an hour somebody hears of it', async (t) => {
  let away = false;
  const database = {
    schema: async () => ({ columns: new Map(), attribute: () => "''" }),
    async query() {
      if (away) throw new ColumnarError('HF_COLUMNAR_TIMEOUT', { seconds: 30 });
      return [{ samples: '1', value: 1, newest: Math.floor(alerts.clock.now() / 1_000), places: [] }];
    },
  } as unknown as ColumnarDatabase;
  const alerts = await rig(t, { receivers: {}, routes: [] }, { database });
  await alerts.settled();
  const verdicts = async () =>
    new Map((await alerts.view()).rules.map(({ rule, verdict }) => [rule, verdict]));
  const fires = async () =>
    (await alerts.view()).alerts.flatMap(({ alert, state, text }) =>
      state === 'firing' ? [[alert, text]] : [],
    );
  t.is((await verdicts()).get('router-ula-reconcile'), 'ok');
  t.is((await verdicts()).get('nas-backup-failed'), 'firing', 'one failed');
  away = true;
  await alerts.pass(120, 30);
  t.is((await verdicts()).get('router-ula-reconcile'), 'unknown', 'its last verdict says nothing of now');
  t.like(alerts.runtime.health().alerts, { rules: { unknown: 1 } });
  await alerts.pass(3_300, 300);
  t.is(
    (await fires()).some(([name]) => name === 'alerts.rules_unevaluated'),
    false,
    'not before an hour',
  );
  await alerts.pass(600, 300);
  t.is((await verdicts()).get('nas-backup-failed'), 'firing', 'what fires goes on firing');
  const [, text] = (await fires()).find(([name]) => name === 'alerts.rules_unevaluated') ?? [];
  t.regex(text ?? '', /^The alert rules router-ula-reconcile, .* cannot be evaluated, so they cannot fire: /);
  away = false;
  await alerts.pass(120, 30);
  t.is((await verdicts()).get('router-ula-reconcile'), 'ok');
  t.is(
    (await fires()).some(([name]) => name === 'alerts.rules_unevaluated'),
    false,
  );
});

test('[O17,R28] doctor names the rules whose data has never come, and nobody is woken for them', async (t) => {
  const database = {
    schema: async () => ({ columns: new Map(), attribute: () => "''" }),
    query: async () => [{ samples: '0', value: 0 }],
  } as unknown as ColumnarDatabase;
  const alerts = await rig(t, { receivers: {}, routes: [] }, { database });
  await alerts.settled();
  await alerts.pass(3 * 3_600, 600);
  const view = await alerts.view();
  t.deepEqual(view.alerts, []);
  const found = await look(
    { receivers: {}, routes: [] },
    { dataDir: alerts.dir, signal, running: { surfaces: {}, facts: {} } },
  );
  t.is(found['alerts.rules']?.state, 'warn');
  t.regex(found['alerts.rules']?.found ?? '', /ever come for nas-backup-missing, router-ula-reconcile:/);
});

test('[O17] doctor calls rules ok only once each was evaluated, and a signal that is said to be optional is not missed', async (t) => {
  const held = Promise.withResolvers<void>();
  const database = {
    schema: async () => ({ columns: new Map(), attribute: () => "''" }),
    async query() {
      await held.promise;
      return [{ samples: '0', value: 0 }];
    },
  } as unknown as ColumnarDatabase;
  const options: Options = {
    receivers: {},
    routes: [],
    signals: { 'nas-backup-missing': { expect: 'optional' }, 'router-ula-reconcile': { expect: 'optional' } },
  };
  const alerts = await rig(t, options, { database });
  await alerts.settled();
  const check = async () =>
    (await look(options, { dataDir: alerts.dir, signal, running: { surfaces: {}, facts: {} } }))[
      'alerts.rules'
    ];
  t.like(await check(), { state: 'unknown' });
  held.resolve();
  await alerts.until('each is evaluated', () =>
    alerts.runtime.services.actors
      .states('alerts.rule')
      .every((one) => Number((one.context as any).evaluations) > 0),
  );
  t.like(await check(), { state: 'ok', found: 'each was evaluated' });
  await alerts.pass(26 * 3_600, 3_600);
  t.deepEqual((await alerts.view()).alerts, []);
});

test('[O17] alerts list shows what happened in the last day and has no end, and says all the same that nothing fires', (t) => {
  const now = Date.parse('2026-11-21T12:00:00Z');
  const one: AlertView = {
    alert: 'columnar.unreachable{store=db}',
    state: 'quiet',
    severity: 'critical',
    title: '',
    text: 'The columnar database cannot be reached.',
    since: '2026-11-21T10:29:09.528Z',
    count: 1,
    informed: [],
    taken: {},
    waiting: [],
  };
  const alerts = [
    one,
    { ...one, alert: 'over', count: 0 },
    { ...one, alert: 'long_ago', since: '2026-11-19T10:29:09.528Z' },
  ];
  const lines: string[] = [];
  const terminal = { paint: (_: unknown, text: string) => text } as never;
  const print = (line: string) => void lines.push(line);
  show({ alerts, rules: [], receivers: [], silences: [] }, { json: false, print, terminal }, now);
  t.deepEqual(lines, [
    'Nothing fires.',
    'happened      columnar.unreachable{store=db}',
    '              The columnar database cannot be reached.',
    '              since 2026-11-21 10:29:09 UTC; nobody has been notified',
  ]);
});
