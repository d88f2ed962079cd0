import { readFileSync } from 'node:fs';
import test from 'ava';
import type { SignalRow } from '../../../src/core/contracts/columnar-database.ts';
import { OWN_SERVICE, PROBE_SERVICE, SIGNAL_TABLES } from '../../../src/core/contracts/columnar-tables.ts';
import { documentedRules } from '../../../src/plugins/alerts/index.ts';
import { evaluate } from '../../../src/plugins/alerts/rules/evaluate.ts';
import { ruleOptions } from '../../../src/plugins/alerts/rules/rule.ts';
import { explainMistakes, mcpCalls } from '../../../src/plugins/columnar/questions/mistakes.ts';
import { verifyNas } from '../../../src/plugins/columnar/questions/nas.ts';
import { verify } from '../../../src/plugins/columnar/questions/verify.ts';
import { createStatement } from '../../../src/plugins/columnar/tables.ts';
import { checkStack } from '../../../src/plugins/watchdog/checks.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';

let rig: ColumnarRig;
test.before(async () => {
  rig = await openColumnar();
});
test.after.always(() => rig.close());
test.beforeEach(() => rig.empty());

const seconds = (ago = 0) => Math.floor(Date.now() / 1_000) - ago;
const time = (ago = 0) => new Date(seconds(ago) * 1_000).toISOString();
const log = (ago: number, more: SignalRow = {}) => ({ Timestamp: time(ago), Body: 'line', ...more });
const span = (service: string, target = '/library_docs/mcp', more: SignalRow = {}) => ({
  Timestamp: time(10),
  ServiceName: service,
  SpanName: 'POST /library_docs/mcp',
  SpanKind: 'Server',
  SpanAttributes: { 'http.target': target },
  ...more,
});
const texts = (findings: readonly { state: string; text: string }[]) =>
  findings.map(({ state, text }) => `${state} ${text.replace(/\d+ s\b/g, 'N s')}`);

test.serial(
  '[O20,O27] an empty stack says what is missing and what to do, whatever we write ourselves',
  async (t) => {
    await rig.database.insert('otel_logs', [log(1, { ServiceName: OWN_SERVICE })]);
    const { findings, signals } = await verify(rig.database, {});
    t.deepEqual(texts(findings), [
      'warn no logs have ever arrived, but those that Holdfast writes itself',
      'warn no metrics have ever arrived',
      'warn no spans in the last hour, and nothing shows that they could arrive',
      'ok every table has the engine that it should',
    ]);
    t.true(findings.every(({ state, remedy }) => state === 'ok' || remedy !== undefined));
    t.deepEqual(
      signals.map(({ signal, path }) => [signal, path.split(' ').slice(0, 3).join(' ')]),
      [
        ['logs', 'a log shipper'],
        ['metrics', 'scrapers push them'],
        ['traces', 'only applications that'],
      ],
    );
  },
);

test.serial(
  '[O27] silence of applications is told from a broken pipeline by a probe that arrived',
  async (t) => {
    await rig.database.insert('otel_traces', [span(`${PROBE_SERVICE}-1f`), span(`${PROBE_SERVICE}-2e`)]);
    const { findings } = await verify(rig.database, {});
    t.regex(
      findings[2]?.text ?? '',
      /^no application sends traces, the pipeline is wired: a probe arrived \d+ s ago$/,
    );
    t.is(findings[2]?.state, 'ok');
  },
);

test.serial(
  '[O20] counts of the last hour by service, namespace and MCP server; stale and future rows are told',
  async (t) => {
    const namespace = (name: string) => ({ ResourceAttributes: { 'k8s.namespace.name': name } });
    await rig.database.insert('otel_logs', [
      log(900, namespace('apps')),
      log(900, namespace('apps')),
      log(900, namespace('stack')),
      log(7_200, namespace('old')),
    ]);
    await rig.database.insert('otel_metrics_gauge', [
      { TimeUnix: time(5), MetricName: 'm', Value: 1 },
      { TimeUnix: time(-3_600), MetricName: 'm', Value: 1 },
    ]);
    await rig.database.insert('otel_traces', [
      span('gateway'),
      span('gateway', '/web_search/mcp?key=sk-canary'),
      span('gateway', '/web_search/mcp', { SpanKind: 'Client' }),
      span('shop', '/cart'),
      span('shop', '/cart', { Timestamp: time(7_200) }),
    ]);
    const report = await verify(rig.database, {});
    t.deepEqual(report.logs, [
      { namespace: 'apps', logs: 2 },
      { namespace: 'stack', logs: 1 },
    ]);
    t.deepEqual(report.spans, [
      { service: 'gateway', spans: 3 },
      { service: 'shop', spans: 1 },
    ]);
    t.deepEqual(
      [...report.mcp].sort((a, b) => a.server.localeCompare(b.server)),
      [
        { server: 'library_docs', calls: 1 },
        { server: 'web_search', calls: 1 },
      ],
    );
    t.notRegex(JSON.stringify(report), /canary/);
    const counts = report.signals.flatMap(({ tables }) => tables).find(({ table }) => table === 'otel_logs');
    t.deepEqual({ lastHour: counts?.lastHour, total: counts?.total }, { lastHour: 3, total: 4 });
    t.deepEqual(texts(report.findings), [
      'fail logs: the newest is N s old, more than N s',
      'ok metrics: the newest is N s old',
      'warn 1 row of metrics is dated in the future',
      'ok traces: spans of 2 services in the last hour',
      'ok every table has the engine that it should',
    ]);
  },
);

test.serial(
  '[O21] a NAS is verified by its host.name: logs, metrics, backup freshness, failed sources',
  async (t) => {
    const host = { ResourceAttributes: { 'host.name': 'nas-1' } };
    await rig.database.insert('otel_metrics_gauge', [
      {
        ResourceAttributes: { 'host.name': 'nas-2' },
        TimeUnix: time(60),
        MetricName: 'system.cpu',
        Value: 1,
      },
    ]);
    const silent = await verifyNas('nas-1', rig.database, {});
    t.deepEqual(texts(silent.findings), [
      'fail nothing comes from nas-1: no logs and no metrics in the last hour, no file.mtime in the last week',
    ]);
    t.regex(silent.findings[0]?.remedy ?? '', /^Hosts that sent metrics in the last hour: nas-2\. /);
    t.is(silent.hoursSinceSuccess, undefined);
    const withMetrics = await verifyNas('nas-2', rig.database, {});
    t.is(withMetrics.gaugesLastHour, 1);
    t.false(texts(withMetrics.findings).some((text) => text.includes('nothing comes from nas-2')));

    const mtime = (value: number, ago: number) => ({
      ...host,
      TimeUnix: time(ago),
      MetricName: 'file.mtime',
      Value: value,
    });
    await rig.database.insert('otel_logs', [log(60, host), log(60)]);
    await rig.database.insert('otel_metrics_sum', [
      mtime(seconds(90_000), 30),
      mtime(seconds(40 * 3_600), 600),
    ]);
    const quiet = texts((await verifyNas('nas-1', rig.database, {})).findings);
    t.true(
      quiet.includes(
        'unknown no backup run reported in the last 10 minutes, so it is not known whether a source failed',
      ),
    );
    t.false(
      quiet.some((text) => /^ok .*(snapshot|backup run)/.test(text)),
      quiet.join(),
    );
    await rig.database.insert('otel_metrics_gauge', [
      { ...host, TimeUnix: time(60), MetricName: 'nas.backup.backup.duration.seconds', Value: 42 },
      { ...host, TimeUnix: time(60), MetricName: 'system.cpu', Value: 1 },
    ]);
    const well = await verifyNas('nas-1', rig.database, {});
    const running = texts(well.findings);
    t.true(running.includes('ok no source reported a failed snapshot in the last 10 minutes'));
    t.is(well.hoursSinceSuccess, 25);
    t.true(Math.abs((well.newestFileAge ?? 0) - 90_000) <= 5);
    t.deepEqual(well.backup, [{ metric: 'nas.backup.backup.duration.seconds', samples: 1, value: 42 }]);
    t.true(
      well.findings.every(({ state }) => state === 'ok'),
      JSON.stringify(well.findings),
    );

    await rig.database.insert('otel_metrics_gauge', [
      {
        ...host,
        TimeUnix: time(60),
        MetricName: 'nas.backup.snapshot.failed',
        Value: 1,
        Attributes: { source: '/photos' },
      },
    ]);
    const sick = await verifyNas('nas-1', rig.database, {});
    t.deepEqual(sick.failedSources, ['/photos']);
    t.deepEqual(
      sick.findings.filter(({ state }) => state === 'fail').map(({ text }) => text),
      ['the snapshot failed for: /photos'],
    );
    t.is((await verifyNas("nas-2' OR 1=1 --", rig.database, {})).logsLastHour, 0);

    await rig.database.insert('otel_metrics_sum', [mtime(seconds(-7_200), 5)]);
    const ahead = await verifyNas('nas-1', rig.database, {});
    t.deepEqual(
      ahead.findings
        .filter(({ text }) => /last success/.test(text))
        .map(({ state, text }) => `${state} ${text}`),
      ['fail the last success is dated 2 h in the future, so its age is not known'],
    );
  },
);

const explain = (sql: string) => explainMistakes(sql, rig.database, new AbortController().signal);

test.serial(
  '[O22] a metric asked of the wrong table is answered with the right query, not with zero rows',
  async (t) => {
    const wrong = "SELECT max(Value) FROM otel_metrics_gauge WHERE MetricName = 'file.mtime'";
    const error = await t.throwsAsync(explain(wrong), { code: 'HF_COLUMNAR_WRONG_TABLE' });
    const query = (error as { remedy?: string }).remedy?.replace(/^[^:]*: /, '') ?? '';
    await rig.database.insert('otel_metrics_sum', [
      { TimeUnix: time(), MetricName: 'file.mtime', Value: 5 },
      { TimeUnix: time(), MetricName: 'http.requests', Value: 5 },
    ]);
    t.is((await rig.database.ask(query, 10)).rows.length, 1, 'the query that it names works');
    await t.throwsAsync(
      explain("SELECT 1 FROM otel_metrics_histogram WHERE MetricName IN ('http.requests')"),
      {
        message: /it is in otel_metrics_sum/,
      },
    );
    await t.notThrowsAsync(explain("SELECT 1 FROM otel_metrics_gauge WHERE MetricName = 'nobody.sends.it'"));
    await t.notThrowsAsync(explain("SELECT 1 FROM otel_metrics_sum WHERE MetricName = 'file.mtime'"));
    await t.notThrowsAsync(
      explain("SELECT 1 FROM my_metrics WHERE MetricName = 'file.mtime'"),
      'a table of somebody else may have any metric',
    );
    await rig.database.insert('otel_metrics_gauge', [
      { TimeUnix: time(), MetricName: 'file.mtime', Value: 5 },
    ]);
    await t.notThrowsAsync(explain(wrong), 'where it is there after all, nothing is in the way');
  },
);

test.serial(
  '[O20] grouping on the raw http.target is refused, with the query that extracts the server',
  async (t) => {
    const raw = "SpanAttributes['http.target']";
    for (const sql of [
      `SELECT ${raw} AS target, count() FROM otel_traces GROUP BY target`,
      `SELECT count() FROM otel_traces GROUP BY ${raw}`,
      `SELECT DISTINCT ${raw} FROM otel_traces`,
      `SELECT groupArray(${raw}) FROM otel_traces`,
      `SELECT lower(${raw}) AS t, count() FROM otel_traces GROUP BY 1`,
    ])
      await t.throwsAsync(explain(sql), { code: 'HF_COLUMNAR_RAW_TARGET' }, sql);
    const calls = mcpCalls(await rig.database.schema('otel_traces'));
    for (const sql of [
      calls,
      `SELECT ServiceName, count() FROM otel_traces WHERE ${raw} = '/x' GROUP BY ServiceName`,
    ])
      await t.notThrowsAsync(explain(sql), sql);
    await rig.database.insert('otel_traces', [span('gateway')]);
    t.deepEqual((await rig.database.ask(calls, 10)).rows, [['library_docs', '1']]);
  },
);

/** As ClickStack and the collector's exporter make them where attributes are to be JSON. */
async function useJsonTables(): Promise<void> {
  const bounds = { seconds: 20, signal: new AbortController().signal };
  for (const table of SIGNAL_TABLES) {
    const ours = createStatement(table, `telemetry.${table}`, 30, false);
    const theirs = ours
      .replaceAll('Map(LowCardinality(String), String)', 'JSON')
      .replace('cityHash64(Attributes), ', '')
      .replace(/ COMMENT '.*'$/, '');
    await rig.engine.command(`DROP TABLE telemetry.${table} SYNC`, bounds);
    await rig.engine.command(theirs, bounds);
  }
  rig.database.forgetSchema();
}

// The last one: the tables of the others are gone after it.
test.serial(
  '[O6,O20,O21] attributes of the type JSON are taken, and found by every question and rule, as those of maps are',
  async (t) => {
    await useJsonTables();
    const { database } = rig;
    t.like(await database.schema('otel_logs'), { isOurs: false });
    const host = {
      ResourceAttributes: { 'host.name': 'nas-1', 'k8s.namespace.name': 'apps', 'a.b': '1', a: '2', '': '3' },
    };
    await database.insert('otel_logs', [log(5, { ...host, LogAttributes: { half: 'x \ud83d' } }), log(5)]);
    await database.insert('otel_traces', [
      span('gateway', '/web_search/mcp?key=sk-canary', {
        'Events.Timestamp': [time()],
        'Events.Name': ['an event'],
        'Events.Attributes': [{ 'exception.type': 'Error' }],
      }),
    ]);
    await database.insert('otel_metrics_sum', [
      { ...host, TimeUnix: time(30), MetricName: 'file.mtime', Value: seconds(3_600) },
    ]);
    await database.insert('otel_metrics_gauge', [
      {
        ...host,
        TimeUnix: time(60),
        MetricName: 'nas.backup.snapshot.failed',
        Value: 1,
        Attributes: { source: '/photos' },
      },
    ]);
    const report = await verify(database, {});
    t.deepEqual(report.logs, [
      { namespace: '', logs: 1 },
      { namespace: 'apps', logs: 1 },
    ]);
    t.deepEqual(report.mcp, [{ server: 'web_search', calls: 1 }]);
    const nas = await verifyNas('nas-1', database, {});
    t.like(nas, { logsLastHour: 1, gaugesLastHour: 1, hoursSinceSuccess: 1 });
    t.deepEqual(nas.failedSources, ['/photos']);
    const rule = documentedRules.find(({ name }) => name === 'nas-backup-failed');
    const { signal } = new AbortController();
    const named = ruleOptions.parse({ ...rule, measure: { ...rule?.measure, where: { source: '/pho*' } } });
    t.like(await evaluate(named, { database }, Date.now(), signal), { value: 1, finding: 'source /photos' });
    const other = ruleOptions.parse({ ...rule, measure: { ...rule?.measure, where: { source: '/music' } } });
    t.deepEqual(await evaluate(other, { database }, Date.now(), signal), {});
    const { stale, failures } = await checkStack(
      database,
      '',
      { staleAfter: 300, signals: ['otel_logs'], producers: [] },
      signal,
    );
    t.true(stale < 300 && failures.length === 0, JSON.stringify(failures));

    const calls = mcpCalls(await database.schema('otel_traces'));
    t.deepEqual((await database.ask(calls, 10)).rows, [['web_search', '1']], 'as the refusal shows it');
    await t.notThrowsAsync(explain(calls));
    for (const raw of ['SpanAttributes.http.target', 'SpanAttributes.`http.target`'])
      await t.throwsAsync(
        explain(`SELECT ${raw}, count() FROM otel_traces GROUP BY 1`),
        {
          code: 'HF_COLUMNAR_RAW_TARGET',
        },
        raw,
      );
    const [row] = await database.query('SELECT Events.Attributes AS events FROM otel_traces');
    t.deepEqual(row, { events: [{ exception: { type: 'Error' } }] });
  },
);

test.serial(
  '[O20] every statement that the pages, errors and findings tell people to type is one that runs',
  async (t) => {
    const root = new URL('../../../', import.meta.url);
    const texts = [
      'docs/stack.md',
      'src/plugins/columnar/commands/query.ts',
      'src/plugins/columnar/errors.ts',
    ].map((file) => readFileSync(new URL(file, root), 'utf8'));
    const typed = texts.flatMap((text) =>
      [...text.matchAll(/stack query (?:"([^"]+)"|'([^']+)')/g)].map(
        ([, double, single]) => double ?? single ?? '',
      ),
    );
    const statements = typed.filter((sql) => !/[<…]/.test(sql));
    t.true(statements.length >= 4, statements.join('\n'));
    const schema = await rig.database.schema('otel_traces');
    const fileAges =
      "SELECT Attributes, TimeUnix, Value FROM otel_metrics_sum WHERE MetricName = 'file.mtime' ORDER BY TimeUnix DESC LIMIT 20";
    for (const sql of [...statements, mcpCalls(schema), fileAges])
      await t.notThrowsAsync(rig.database.ask(sql, 10), sql);
  },
);
