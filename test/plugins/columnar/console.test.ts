// The pages of telemetry, against the real engine.
import test from 'ava';
import type { PageMoment, PageSection } from '../../../src/core/contracts/console.ts';
import { logSections } from '../../../src/plugins/columnar/console/logs.ts';
import { sqlSections } from '../../../src/plugins/columnar/console/sql.ts';
import { oneTraceSections } from '../../../src/plugins/columnar/console/trace.ts';
import { traceSections } from '../../../src/plugins/columnar/console/traces.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';

const NOW = Date.UTC(2026, 8, 1, 12, 0, 0);
const TRACE = '5b8efff798038103d269b633813fc60c';
const OTHER = '0af7651916cd43dd8448eb211c80319c';
/** @param ms from `NOW` */
const at = (ms: number) => new Date(NOW + ms).toISOString();

let rig: ColumnarRig;
test.before(async () => {
  rig = await openColumnar();
  const line = (ms: number, Body: string, more = {}) => ({
    Timestamp: at(ms),
    Body,
    ServiceName: 'shop',
    SeverityText: 'INFO',
    SeverityNumber: 9,
    ...more,
  });
  await rig.database.insert('otel_logs', [
    line(-50_000, 'the cart is open', {
      TraceId: TRACE,
      SpanId: 'aa01',
      LogAttributes: { 'http.route': '/cart' },
    }),
    line(-40_000, 'a slow answer', { SeverityText: 'Warning', SeverityNumber: 0, ServiceName: 'stock' }),
    line(-30_000, 'Timeout of the stock', {
      SeverityText: 'ERROR',
      SeverityNumber: 17,
      TraceId: TRACE,
      SpanId: 'aa02',
    }),
    line(-10_000, 'later', { ResourceAttributes: { 'host.name': 'nas-1' } }),
    line(-7_200_000, 'two hours ago'),
    line(3_000, 'in the future'),
  ]);
  const span = (ms: number, length: number, SpanId: string, SpanName: string, more = {}) => ({
    Timestamp: at(ms),
    Duration: String(length * 1e6),
    TraceId: TRACE,
    SpanId,
    SpanName,
    ServiceName: 'shop',
    SpanKind: 'Server',
    StatusCode: 'Unset',
    ...more,
  });
  await rig.database.insert('otel_traces', [
    span(-50_000, 25_000.5, 'aa01', 'POST /cart', {
      SpanAttributes: { 'http.route': '/cart', password: 'canary-secret' },
    }),
    span(-45_000, 15_000, 'aa02', 'reserve', {
      ParentSpanId: 'aa01',
      ServiceName: 'stock',
      StatusCode: 'Error',
      StatusMessage: 'deadline exceeded',
      Events: undefined,
      'Events.Timestamp': [at(-31_000)],
      'Events.Name': ['exception'],
      'Events.Attributes': [{ 'exception.type': 'TimeoutError' }],
    }),
    span(-20_000, 5, 'bb01', 'GET /', { TraceId: OTHER }),
    span(-5_000, 60_000, 'bb02', 'ends after now', { TraceId: OTHER, ParentSpanId: 'bb01' }),
  ]);
});
test.after.always(() => rig.close());

function moment(inputs: Record<string, string> = {}, ms = 0, isNow = false): PageMoment {
  const { signal } = new AbortController();
  const records = async () => ({ records: [], more: false });
  return { seq: 1, time: NOW + ms, isNow, states: new Map(), records, inputs, signal };
}

function of<K extends PageSection['kind']>(sections: readonly PageSection[], kind: K) {
  return sections.filter((one): one is Extract<PageSection, { kind: K }> => one.kind === kind);
}
const bodies = (sections: readonly PageSection[]) =>
  of(sections, 'table').flatMap(({ rows }) => rows.map(({ cells }) => cells.body));
const logs = async (inputs: Record<string, string>, ms = 0) => logSections(rig.database, moment(inputs, ms));

test('[C15,O20] log lines are found by text, service, severity and attribute, newest first, until the moment', async (t) => {
  const all = await logs({});
  t.deepEqual(bodies(all), ['later', 'Timeout of the stock', 'a slow answer', 'the cart is open']);
  t.deepEqual(bodies(await logs({ text: 'TIMEOUT' })), ['Timeout of the stock']);
  t.deepEqual(bodies(await logs({ service: 'stock' })), ['a slow answer']);
  t.deepEqual(bodies(await logs({ severity: 'warning or worse' })), [
    'Timeout of the stock',
    'a slow answer',
  ]);
  t.deepEqual(bodies(await logs({ attribute: 'http.route=/cart' })), ['the cart is open']);
  t.deepEqual(bodies(await logs({ attribute: 'host.name' })), ['later'], 'also of the resource');
  t.deepEqual(bodies(await logs({ attribute: 'host.name http.route' })), []);
  t.deepEqual(bodies(await logs({ until: '2026-09-01T11:59:15' })), ['the cart is open']);
  t.deepEqual(
    bodies(await logs({}, -35_000)),
    ['a slow answer', 'the cart is open'],
    'what came later is not known then',
  );
  const [row] = of(all, 'table')[0]?.rows.slice(1) ?? [];
  t.like(row, { status: 'failing', page: { name: 'trace', inputs: { trace: TRACE } } });
  t.is(row?.cells.time, NOW - 30_000);
  const [chart] = of(all, 'chart');
  const sums = chart?.series.map(({ name, points }) => [
    name,
    points.reduce((sum, [, value]) => sum + value, 0),
  ]);
  t.deepEqual(sums, [
    ['errors', 1],
    ['warnings', 1],
    ['others', 2],
  ]);
  t.is(chart?.series[0]?.points.length, 61, 'an hour, a minute each');
  t.deepEqual(
    of(all, 'bars')[0]?.bars.map(({ name, value }) => [name, value]),
    [
      ['shop', 3],
      ['stock', 1],
    ],
  );
});

test('[C15] a search that finds nothing says what there is; what is no time, duration or filter is refused', async (t) => {
  const [none] = await logs({ text: 'nowhere' });
  t.like(none, { kind: 'facts', title: 'No log line of this time matches' });
  t.like(of(none ? [none] : [], 'facts')[0]?.facts[0], { since: NOW - 10_000, page: { name: 'logs' } });
  const before = await logs({}, -8_000_000);
  t.like(before, [{ kind: 'text' }]);
  await t.throwsAsync(logs({ until: 'soon' }), { code: 'HF_COLUMNAR_FILTER' });
  await t.throwsAsync(logs({ attribute: 'a b c d e f g h i' }), { code: 'HF_COLUMNAR_FILTER' });
  await t.throwsAsync(traceSections(rig.database, moment({ least: 'long' })), { code: 'HF_COLUMNAR_FILTER' });
  t.deepEqual(bodies(await logs({ service: "' OR 1 = 1 --", attribute: "x'=y'", text: '%' })), []);
});

test('[C15] traces are found by service, span, duration and outcome, and are as they were known at the moment', async (t) => {
  const found = async (inputs: Record<string, string>, ms = 0) =>
    of(await traceSections(rig.database, moment(inputs, ms)), 'table').flatMap(({ rows }) =>
      rows.map(({ cells, page }) => [page?.inputs?.trace, cells.root, cells.spans, cells.failed]),
    );
  t.deepEqual(await found({}), [
    [OTHER, 'GET /', 1, 0],
    [TRACE, 'POST /cart', 2, 1],
  ]);
  t.deepEqual(await found({ outcome: 'only failed' }), [[TRACE, 'POST /cart', 2, 1]]);
  t.deepEqual(await found({ least: '20s' }), [[TRACE, 'POST /cart', 2, 1]]);
  t.deepEqual(await found({ span: 'get' }), [[OTHER, 'GET /', 1, 0]]);
  t.deepEqual(await found({ service: 'stock', attribute: 'http.route' }), []);
  t.deepEqual(await found({}, -28_000), [[TRACE, 'reserve', 1, 1]], 'the first span had not ended');
});

test('[C15] a trace is a waterfall with the log lines of its spans, and its failures on top', async (t) => {
  const sections = await oneTraceSections(rig.database, moment({ trace: TRACE }));
  const [{ spans } = { spans: [] }] = of(sections, 'waterfall');
  t.like(spans, [
    { id: 'aa01', by: 'shop', start: NOW - 50_000, duration: 25_000.5 },
    { id: 'aa02', parent: 'aa01', by: 'stock', status: 'failing', duration: 15_000 },
  ]);
  t.is(spans[0]?.status, undefined, 'nobody said that it went well');
  t.deepEqual(
    spans[1]?.marks?.map(({ text }) => text),
    ['exception exception.type=TimeoutError', 'ERROR: Timeout of the stock'],
  );
  t.is(spans[1]?.facts?.message, 'deadline exceeded');
  const [facts] = of(sections, 'facts');
  t.regex(
    String(facts?.facts.find(({ label }) => label === 'Failed')?.value),
    /^1; it began in stock reserve \(deadline exceeded\)$/,
  );
  t.deepEqual(bodies(sections), ['the cart is open', 'Timeout of the stock']);
  const then = await oneTraceSections(rig.database, moment({ trace: TRACE }, -29_500));
  t.deepEqual(
    of(then, 'waterfall')[0]?.spans.map(({ id }) => id),
    ['aa02'],
  );
  t.like(await oneTraceSections(rig.database, moment({ trace: 'ffff' })), [{ kind: 'text' }]);
  t.like(await oneTraceSections(rig.database, moment()), [{ kind: 'text' }]);
});

test('[C15,O7] a statement is answered as a table and as a chart, within the bounds of statements that read', async (t) => {
  const ask = (sql: string, ms = 0, isNow = true) => sqlSections(rig.database, moment({ sql }, ms, isNow));
  const lines = await ask(
    'SELECT toStartOfInterval(Timestamp, INTERVAL 10 SECOND) AS time, count() AS n, max(Duration) AS longest FROM otel_traces GROUP BY time ORDER BY time DESC',
  );
  t.deepEqual(
    of(lines, 'chart')[0]?.series.map(({ name, points }) => [name, points.map(([, value]) => value)]),
    [
      ['n', [2, 1, 1]],
      ['longest', [25_000_500_000, 5_000_000, 60_000_000_000]],
    ],
  );
  const by = await ask('SELECT Timestamp, ServiceName, Duration FROM otel_traces ORDER BY Timestamp DESC');
  t.deepEqual(
    of(by, 'chart')[0]?.series.map(({ name, points }) => [name, points.length]),
    [
      ['shop', 3],
      ['stock', 1],
    ],
  );
  t.deepEqual(of(by, 'chart')[0]?.series[0]?.points[0], [NOW - 50_000, 25_000_500_000]);
  const bars = await ask('SELECT ServiceName, count() AS n FROM otel_logs GROUP BY 1 ORDER BY n DESC');
  t.deepEqual(of(bars, 'bars')[0]?.bars, [
    { name: 'shop', value: 5 },
    { name: 'stock', value: 1 },
  ]);
  const odd = await ask('SELECT 18446744073709551615 AS big, [1, 2] AS list, NULL AS none');
  t.deepEqual(of(odd, 'table')[0]?.rows, [
    { cells: { big: '18446744073709551615', list: '[1,2]', none: null } },
  ]);
  for (const sql of [
    'DROP TABLE otel_logs',
    'INSERT INTO otel_logs (Body) VALUES (1)',
    "SELECT * FROM url('http://127.0.0.1/')",
    'SELECT 1 SETTINGS readonly = 0',
    'SELECT 1; SELECT 2',
  ])
    await t.throwsAsync(ask(sql), { code: 'HF_COLUMNAR_REFUSED' }, sql);
  await t.throwsAsync(ask('SELECT http FROM otel_traces'), { code: 'HF_COLUMNAR_QUERY' });
  await t.throwsAsync(ask("SELECT DISTINCT SpanAttributes['http.target'] FROM otel_traces"), {
    code: 'HF_COLUMNAR_RAW_TARGET',
  });
  const help = await sqlSections(rig.database, moment());
  t.true(of(help, 'table')[0]?.rows.every(({ page }) => page?.name === 'sql'));
});

test('[C15] a statement sees nothing that came after the moment, and the moment is its now', async (t) => {
  const value = async (sql: string, ms: number) =>
    Object.values(of(await sqlSections(rig.database, moment({ sql }, ms)), 'table')[0]?.rows[0]?.cells ?? {});
  t.deepEqual(await value('SELECT count() FROM otel_logs', 0), [5]);
  t.deepEqual(await value('SELECT count() FROM otel_logs', -35_000), [3]);
  t.deepEqual(
    await value('SELECT count() FROM telemetry.otel_logs AS l JOIN otel_traces AS s USING TraceId', -46_000),
    [1],
  );
  t.deepEqual(await value('SELECT max(Timestamp) FROM (SELECT * FROM otel_logs)', -35_000), [NOW - 40_000]);
  t.deepEqual(await value('SELECT now(), now64(3), toString(today()), yesterday() = today() - 1', -1_500), [
    NOW - 2_000,
    NOW - 1_500,
    '2026-09-01',
    1,
  ]);
  t.deepEqual(await value("SELECT 'now()' AS text, 1 AS `now()` -- now()", 0), ['now()', 1]);
});
