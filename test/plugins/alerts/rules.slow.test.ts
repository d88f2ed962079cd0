import test from 'ava';
import { documentedRules } from '../../../src/plugins/alerts/index.ts';
import { evaluate, type Sources } from '../../../src/plugins/alerts/rules/evaluate.ts';
import { atHome, type Rule, ruleOptions, withSignal } from '../../../src/plugins/alerts/rules/rule.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { webhook } from '../../support/webhook.ts';
import { rig, sample } from './rig.ts';

const HOUR = 3_600_000;
const now = Date.now();
const { signal } = new AbortController();
let columnar: ColumnarRig;
test.before(async () => {
  columnar = await openColumnar();
});
test.after.always(() => columnar.close());
test.beforeEach(() => columnar.empty('otel_metrics_gauge', 'otel_metrics_sum'));

const rule = (name: string): Rule => ruleOptions.parse(documentedRules.find((each) => each.name === name));
const home = { host: 'edge', instance: 'ula' };
const ofHome = { 'host.name': 'edge', 'service.instance.id': 'ula' };
/** Evaluates a rule, without the time and the places of its samples. */
const look = async (name: string, at = now, sources: Partial<Sources> = {}) => {
  const all = { database: columnar.database, ...sources };
  const { newestAt: _, places: __, ...found } = await evaluate(atHome(rule(name), home), all, at, signal);
  return found;
};
const gauge = (...rows: object[]) => columnar.database.insert('otel_metrics_gauge', rows as never);
const sum = (...rows: object[]) => columnar.database.insert('otel_metrics_sum', rows as never);

test.serial('[O17] the documented windows and intervals are those of the table', (t) => {
  const table = documentedRules.map(({ title, window, every, above, below, onNoData }) => [
    title,
    above === undefined ? `below ${below}` : `above ${above}`,
    window,
    every,
    onNoData,
  ]);
  t.deepEqual(
    documentedRules.filter(({ onNoData, expect }) => onNoData === 'fire' && expect !== 'steady'),
    [],
    'a fresh install that sends nothing wakes nobody',
  );
  t.deepEqual(table, [
    ['NAS backup snapshot FAILED', 'above 0', '1d', '1h', 'ok'],
    ['NAS backup telemetry MISSING (collector dark)', 'below 1', '1h', '1h', 'fire'],
    ['NAS backup STALE', 'above 36', '7d', '1h', 'ok'],
    ['Observability watchdog push delivery FAILING', 'above 0', '1h', '5m', 'ok'],
    ['Router ULA reconciler NOT RUNNING', 'below 1', '5m', '1m', 'fire'],
  ]);
});

test.serial(
  '[O17] FAILED names its sources for a day, and a healthy run that emits nothing is no zero',
  async (t) => {
    t.deepEqual(await look('nas-backup-failed'), {});
    await gauge(
      sample('nas.backup.snapshot.failed', 1, now - 23 * HOUR, { source: 'photos' }),
      sample('nas.backup.snapshot.failed', 1, now - HOUR, { source: 'music' }),
    );
    t.deepEqual(await look('nas-backup-failed'), { value: 1, finding: 'source music, photos' });
    t.deepEqual(await look('nas-backup-failed', now + 2 * HOUR), { value: 1, finding: 'source music' });
    t.deepEqual(await look('nas-backup-failed', now + 24 * HOUR), {});
  },
);

test.serial('[O17] MISSING counts file.mtime among the sums, and none is no data', async (t) => {
  t.deepEqual(await look('nas-backup-missing'), {});
  await gauge(sample('file.mtime', 1, now - 1_000));
  t.deepEqual(await look('nas-backup-missing'), {}, 'a gauge of that name is none');
  await sum(sample('file.mtime', now / 1_000, now - 59 * 60_000));
  t.deepEqual(await look('nas-backup-missing'), { value: 1 });
  t.deepEqual(await look('nas-backup-missing', now + HOUR), {});
});

test.serial('[O17,O18] STALE is the age of the newest mtime, not of its sample', async (t) => {
  t.deepEqual(await look('nas-backup-stale'), {});
  await sum(sample('file.mtime', now / 1_000 - 35.5 * 3_600, now - 1_000));
  t.deepEqual(await look('nas-backup-stale'), { value: 35.5 });
  t.deepEqual(await look('nas-backup-stale', now + HOUR), { value: 36.5 });
});

test.serial(
  '[O17] a failed push job is seen for a full hour after its last sample, with its name',
  async (t) => {
    await gauge(
      sample('kube_job_failed', 0, now - 90_000, { job_name: 'clickstack-watchdog-1' }),
      sample('kube_job_failed', 1, now - 60_000, { job_name: 'clickstack-watchdog-2' }),
    );
    const seen = { value: 1, finding: 'job_name clickstack-watchdog-2' };
    t.deepEqual(await look('watchdog-push-failing'), seen);
    t.deepEqual(await look('watchdog-push-failing', now + 58 * 60_000), seen);
    t.deepEqual(await look('watchdog-push-failing', now + 2 * HOUR), {});
  },
);

const unit = 'the heartbeat of the same host arrives: the unit is down';
const dark = 'the heartbeat of the same host is silent too: the host or its collector is dark';
const up = (value: number, at: number, resource: Record<string, string> = ofHome) =>
  sample('router.ula_reconcile.up', value, at, {}, resource);
const beat = (at: number, resource: Record<string, string>) =>
  sample('router.diag.heartbeat', 1, at, {}, resource);
const sender = { 'host.name': 'edge', 'service.name': 'holdfast-heartbeat' };

test.serial(
  '[R28] the reconciler is down on 0 and on silence, and the heartbeat tells the unit from the host',
  async (t) => {
    await gauge(beat(now - 30_000, sender));
    t.deepEqual(await look('router-ula-reconcile'), { finding: unit });
    await gauge(up(1, now - 120_000), up(0, now - 60_000));
    t.deepEqual(await look('router-ula-reconcile'), { value: 0, finding: unit });
    await gauge(up(1, now - 10_000));
    t.deepEqual(await look('router-ula-reconcile'), { value: 1 });
    t.deepEqual(await look('router-ula-reconcile', now + 10 * 60_000), { finding: dark });
  },
);

test.serial(
  '[R28] where no heartbeat outlives the process, its silence says nothing of the host',
  async (t) => {
    t.regex(
      (await look('router-ula-reconcile')).finding ?? '',
      /^unknown whether the unit or the host is down/,
    );
    await gauge(beat(now - HOUR, ofHome), up(1, now - HOUR));
    t.regex(
      (await look('router-ula-reconcile')).finding ?? '',
      /^unknown whether/,
      'it ended with the process',
    );
    await gauge(beat(now - HOUR, sender));
    t.deepEqual(await look('router-ula-reconcile'), { finding: dark });
  },
);

test.serial(
  '[R28] another instance with telemetry neither masks the reconciler nor fakes the host',
  async (t) => {
    const others = [
      { 'host.name': 'edge', 'service.instance.id': 'another' },
      { 'host.name': 'laptop', 'service.instance.id': 'ula' },
      {},
    ];
    await gauge(up(0, now - 60_000), ...others.map((resource) => up(1, now - 10_000, resource)));
    await gauge(beat(now - HOUR, sender), ...others.slice(1).map((resource) => beat(now - 10_000, resource)));
    t.deepEqual(await look('router-ula-reconcile'), { value: 0, finding: dark });
    await columnar.empty('otel_metrics_gauge');
    await gauge(up(1, now - 10_000), ...others.map((resource) => up(0, now - 5_000, resource)));
    t.deepEqual(await look('router-ula-reconcile'), { value: 1 }, "another's zero is not ours");
    const elsewhere = atHome(withSignal(rule('router-ula-reconcile'), { host: 'laptop' }), home);
    t.like(await evaluate(elsewhere, { database: columnar.database }, now, signal), {
      value: 0,
      places: ['laptop (instance ula)'],
      newestAt: Math.floor((now - 5_000) / 1_000) * 1_000,
    });
  },
);

test.serial(
  '[O17,O19] a failed push is heard without telemetry, from the runs themselves, and what cannot be looked at is not ok',
  async (t) => {
    const run = (name: string) => ({
      run: name,
      namespace: 'holdfast',
      text: 'push delivery failed; exit: HTTP 404',
    });
    const runs = (failed: string[], fault?: string, ended = ['clickstack-watchdog-6']) => ({
      runs: { failed: () => failed.map(run), known: () => [...ended, ...failed], fault: () => fault },
    });
    const name = 'watchdog-push-failing';
    const found = {
      value: 1,
      finding: 'holdfast/clickstack-watchdog-7: push delivery failed; exit: HTTP 404',
    };
    t.deepEqual(await look(name, now, runs(['clickstack-watchdog-7', 'memory-snapshot-7'])), found);
    t.deepEqual(await look(name, now, { ...runs(['clickstack-watchdog-7']), database: undefined }), found);
    t.deepEqual(
      await look(name, now, runs(['memory-snapshot-7'])),
      { value: 0 },
      'other jobs have alerts of their own',
    );
    const unread = { code: 'HF_ALERTS_UNSEEN', message: /the cluster is away/ };
    await t.throwsAsync(look(name, now, runs([], 'the cluster is away')), unread);
    t.deepEqual(await look(name, now, runs(['clickstack-watchdog-7'], 'the cluster is away')), found);
    t.deepEqual(await look(name, now, { ...runs([]), database: undefined }), { value: 0 });
    for (const database of [columnar.database, undefined]) {
      t.deepEqual(
        await look(name, now, { ...runs(['memory-snapshot-7'], undefined, []), database }),
        {},
        'where no run of the watchdog is there, nothing is known of it',
      );
    }
    await t.throwsAsync(look(name, now, { database: undefined }), {
      message: /there is no columnar database/,
    });
  },
);

test.serial('[O17,O21] a rule of one host hears no other', async (t) => {
  const ours = { ...rule('nas-backup-missing') };
  ours.measure = { ...ours.measure, resource: { 'host.name': 'nas' } };
  await sum(sample('file.mtime', 1, now - 1_000, {}, { 'host.name': 'other' }));
  t.deepEqual(await evaluate(ours, { database: columnar.database }, now, signal), { places: ['nas'] });
  await sum(sample('file.mtime', 1, now - 1_000, {}, { 'host.name': 'nas' }));
  t.like(await evaluate(ours, { database: columnar.database }, now, signal), { value: 1, places: ['nas'] });
});

test.serial('[O17] a schema that keeps whole seconds is asked as well as ours', async (t) => {
  const { engine } = columnar;
  const bounds = { seconds: 10, signal };
  await engine.command('RENAME TABLE telemetry.otel_metrics_gauge TO telemetry.kept', bounds);
  t.teardown(async () => {
    await engine.command('DROP TABLE telemetry.otel_metrics_gauge', bounds);
    await engine.command('RENAME TABLE telemetry.kept TO telemetry.otel_metrics_gauge', bounds);
  });
  await engine.command(
    `CREATE TABLE telemetry.otel_metrics_gauge (MetricName String, TimeUnix DateTime, Value Float64,
     Attributes Map(LowCardinality(String), String), ResourceAttributes Map(LowCardinality(String), String))
     ENGINE = MergeTree ORDER BY TimeUnix`,
    bounds,
  );
  const at = Math.floor(now / 1_000);
  const ours = `{'host.name': 'edge', 'service.instance.id': 'ula'}`;
  await engine.command(
    `INSERT INTO telemetry.otel_metrics_gauge VALUES
     ('router.ula_reconcile.up', ${at - 60}, 1, {}, ${ours}), ('router.ula_reconcile.up', ${at}, 0, {}, ${ours}),
     ('router.diag.heartbeat', ${at}, 1, {}, {'host.name': 'edge', 'service.name': 'holdfast-heartbeat'})`,
    bounds,
  );
  t.like(await look('router-ula-reconcile'), { value: 0 });
  t.deepEqual(await look('router-ula-reconcile', now + 5 * 60_000 + 2_000), {
    finding: dark,
  });
});

test.serial('[O17,R28] a breach in the database reaches the webhook once, and so does its end', async (t) => {
  const receiver = await webhook(t);
  const { clock, until, pass, divergence, records, view } = await rig(
    t,
    {
      receivers: { phone: { url: receiver.url, batchSeconds: 0 } },
      routes: [{ steps: [{ to: ['phone'] }] }],
      rules: [documentedRules[4]!],
      signals: { 'router-ula-reconcile': { host: 'edge', instance: 'ula' } },
    },
    { database: columnar.database },
  );
  const upNow = (value: number) => gauge(up(value, clock.now()));
  const looks = async () => (await records()).filter(({ event }) => event.type === 'EVALUATED');
  await until('the first look', () => true);
  let seen = 0;
  const minute = async () => {
    await pass(60);
    const before = seen;
    for (let tries = 0; tries < 400 && seen === before; tries += 1) {
      await pass(0.001);
      seen = (await looks()).length;
    }
  };
  await upNow(1);
  await minute();
  await minute();
  t.is(receiver.received.length, 0);
  await upNow(0);
  await minute();
  await until('the alert', () => receiver.received.length === 1);
  await minute();
  await minute();
  await upNow(1);
  await minute();
  await until('its end', () => receiver.received.length === 2);
  const [firing, resolved] = receiver.json();
  t.like(firing, {
    title: 'Router ULA reconciler NOT RUNNING',
    state: 'firing',
    value: 0,
    threshold: 'below 1',
    window: '5m',
  });
  t.like(resolved, { state: 'resolved', value: 1 });
  t.not(receiver.received[0]?.headers['idempotency-key'], receiver.received[1]?.headers['idempotency-key']);
  t.false(
    (await looks()).some(({ batched }) => batched),
    'whatever an alert follows is durable',
  );
  const { rules } = await view();
  t.like(rules[0], { verdict: 'ok', value: 1 });
  t.is(divergence(), undefined);
});

test.serial(
  '[C10,R28] an hour of unchanged evaluations is one record with their number, and a change is recorded at once',
  async (t) => {
    const { clock, pass, divergence, records, view } = await rig(
      t,
      {
        rules: [documentedRules[4]!],
        signals: { 'router-ula-reconcile': { host: 'edge', instance: 'ula' } },
      },
      { database: columnar.database },
    );
    const evaluations = async () =>
      (await records()).flatMap(({ event }) => (event.type === 'EVALUATED' ? [event] : []));
    const minutes = async (count: number, value: number) => {
      for (let minute = 0; minute < count; minute += 1) {
        await gauge(up(value, clock.now() + 59_000));
        await pass(60);
        const begun = performance.now();
        const isLooked = async () =>
          Date.parse((await view()).rules[0]?.lookedAt ?? '') >= clock.now() - 1_000;
        while (!(await isLooked())) {
          if (performance.now() - begun > PATIENCE_MS) throw new Error('it was not evaluated in its minute');
          await pass(0.001);
        }
      }
    };
    await minutes(2, 1);
    const before = (await records()).length;
    await minutes(61, 1);
    t.true((await records()).length - before <= 4, 'an hour is a record or two');
    t.is((await view()).rules[0]?.verdict, 'ok');
    const counted = (await evaluations()).reduce((sum, { looks = 1 }) => sum + Number(looks), 0);
    t.true(counted >= 58, `${counted} of the evaluations are in the log`);
    await minutes(1, 0);
    t.is((await view()).rules[0]?.verdict, 'firing');
    t.is((await evaluations()).at(-1)?.value, 0);
    t.is(divergence(), undefined);
  },
);
