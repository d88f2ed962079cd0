import { statSync, writeFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import type { SignalRow } from '../../../src/core/contracts/columnar-database.ts';
import { SIGNAL_TABLES } from '../../../src/core/contracts/columnar-tables.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { areSubstreamsWhole } from '../../../src/plugins/columnar/engine/write-check.ts';
import { columnarOptions } from '../../../src/plugins/columnar/options.ts';
import { writerOf } from '../../../src/plugins/otlp/decode/row-writer.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';
import { runs } from '../../support/runs.ts';

let rig: ColumnarRig;
test.before(async () => {
  rig = await openColumnar();
});
test.after.always(() => rig.close());

const NOW = Date.now();
const iso = (ago = 0) => new Date(NOW - ago).toISOString().replace('Z', '000123Z');
const nanos = `${NOW}000123`;

function span(more: SignalRow = {}): SignalRow {
  return {
    Timestamp: iso(),
    TraceId: 'a'.repeat(32),
    SpanId: 'b'.repeat(16),
    SpanName: 'POST /library_docs/mcp',
    SpanKind: 'Server',
    ServiceName: 'gateway',
    SpanAttributes: { 'http.target': '/library_docs/mcp' },
    Duration: '18446744073709551615',
    StatusCode: 'Ok',
    'Events.Timestamp': [iso()],
    'Events.Name': ['an event'],
    'Events.Attributes': [{ a: 'b' }],
    ...more,
  };
}

test.serial(
  '[O6] the seven tables are there, their times keep nanoseconds, and 64-bit integers come back whole',
  async (t) => {
    const tables = await rig.database.query<{ name: string }>('SHOW TABLES');
    t.deepEqual(
      tables.map(({ name }) => name),
      [...SIGNAL_TABLES].sort(),
    );
    await rig.database.insert('otel_traces', [span()]);
    const [row] = await rig.database.query(
      'SELECT toUnixTimestamp64Nano(Timestamp) AS at, Duration, SpanAttributes, Events.Name AS events, toUnixTimestamp64Nano(Events.Timestamp[1]) AS first FROM otel_traces WHERE ServiceName = {service:String}',
      { service: 'gateway' },
    );
    t.deepEqual(row, {
      at: nanos,
      Duration: '18446744073709551615',
      SpanAttributes: { 'http.target': '/library_docs/mcp' },
      events: ['an event'],
      first: nanos,
    });
    t.is(statSync(`${rig.folder}/columnar`).mode & 0o777, 0o700);
  },
);

test.serial('what one producer sends cannot spoil the batch of another', async (t) => {
  await rig.empty('otel_metrics_gauge');
  const metric = { MetricName: 'm', ServiceName: 's', TimeUnix: nanos, Value: 1 };
  const rows = [
    metric,
    { ...metric, TimeUnix: '18446744073709551615' },
    { ...metric, TimeUnix: 'no time' },
    { ...metric, Value: Number.NaN },
    { ...metric, Value: Number.POSITIVE_INFINITY },
    { ...metric, Attributes: { 'half \ud83d': 'a character \udc00' } },
    { ...metric, unknown: 'column' },
    { MetricName: 'm' },
  ];
  const schema = await rig.database.schema('otel_metrics_gauge');
  const writer = writerOf(schema);
  const bytes = Buffer.from(rows.map((row) => writer.line(writer.scope(row), row)).join('\n'));
  const written = { rows: rows.length, schema, columns: writer.columns, bytes };
  await rig.database.insert('otel_metrics_gauge', written);
  const [row] = await rig.database.query(
    'SELECT count() AS rows, max(TimeUnix) AS newest, countIf(isNaN(Value)) AS nans, countIf(isInfinite(Value)) AS infinite FROM otel_metrics_gauge',
  );
  t.deepEqual(row, { rows: '8', newest: '2262-04-11 23:47:16.854775807', nans: '1', infinite: '1' });
});

test.serial('parameters are bound, never pasted', async (t) => {
  const [row] = await rig.database.query<{ text: string; list: string[]; yes: boolean; n: string }>(
    'SELECT {text:String} AS text, {list:Array(String)} AS list, {yes:Bool} AS yes, {n:UInt64} AS n',
    { text: "it's \\ \n {x:String}; --", list: ["a'b", 'c\\'], yes: true, n: '18446744073709551615' },
  );
  t.deepEqual(row, {
    text: "it's \\ \n {x:String}; --",
    list: ["a'b", 'c\\'],
    yes: true,
    n: '18446744073709551615',
  });
});

test.serial(
  '[O7] a query that takes too long ends in the engine too, and its connection works on',
  async (t) => {
    const slow = 'SELECT sum(sin(number)) FROM numbers(100000000000)';
    const late = await t.throwsAsync(rig.database.query(slow, {}, { maxSeconds: 1 }), {
      code: 'HF_COLUMNAR_TIMEOUT',
    });
    t.regex(String((late?.cause as Error)?.message), /Timeout exceeded/, 'it is the engine that ended it');
    const giveUp = new AbortController();
    const asked = rig.database.ask(slow, 10, { signal: giveUp.signal, maxSeconds: 60 });
    setTimeout(() => giveUp.abort(new Error('given up')), 50);
    await t.throwsAsync(asked, { message: 'given up' });
    for (let left = 1; left > 0; ) {
      const rows = await rig.database.query<{ n: string }>(
        "SELECT count() AS n FROM system.processes WHERE query LIKE '%numbers(100000000000)%' AND query NOT LIKE '%processes%'",
      );
      left = Number(rows[0]?.n);
    }
    t.pass();
  },
);

test.serial(
  '[O6] columns are those of the document, and rows live as long as was set, at least 14 days',
  async (t) => {
    const columns = await rig.database.query<{ table: string; name: string; type: string }>(
      "SELECT table, name, type FROM system.columns WHERE database = 'telemetry' AND name IN ('Timestamp', 'TimestampTime', 'TimeUnix', 'ResourceAttributes', 'SpanAttributes', 'Attributes', 'MetricName', 'Value', 'Count', 'BucketCounts', 'Scale', 'ValueAtQuantiles.Quantile', 'Body', 'ServiceName', 'SpanName')",
    );
    const of = (wanted: string) =>
      new Map(columns.filter(({ table }) => table === wanted).map(({ name, type }) => [name, type]));
    const [time, map] = ['DateTime64(9)', 'Map(LowCardinality(String), String)'];
    t.deepEqual([...of('otel_logs').keys()].sort(), [
      'Body',
      'ResourceAttributes',
      'ServiceName',
      'Timestamp',
    ]);
    t.deepEqual([...of('otel_traces').keys()].sort(), [
      'ResourceAttributes',
      'ServiceName',
      'SpanAttributes',
      'SpanName',
      'Timestamp',
    ]);
    for (const kind of ['gauge', 'sum']) t.is(of(`otel_metrics_${kind}`).get('Value'), 'Float64');
    t.is(of('otel_metrics_histogram').get('BucketCounts'), 'Array(UInt64)');
    t.is(of('otel_metrics_exponential_histogram').get('Scale'), 'Int32');
    t.is(of('otel_metrics_summary').get('ValueAtQuantiles.Quantile'), 'Array(Float64)');
    for (const table of SIGNAL_TABLES) {
      const found = of(table);
      t.is(found.get(table.includes('metrics') ? 'TimeUnix' : 'Timestamp'), time, table);
      t.is(found.get('ResourceAttributes'), map, table);
      if (table.includes('metrics')) t.is(found.get('Attributes'), map, table);
    }
    t.regex(String(columnarOptions.safeParse({ retentionDays: 13 }).error), /at least 14 days/);

    const DAY = 86_400_000;
    await rig.empty('otel_logs');
    await rig.database.insert('otel_logs', [
      { Timestamp: iso(31 * DAY), Body: 'old' },
      { Timestamp: iso(29 * DAY), Body: 'younger' },
    ]);
    const bounds = { seconds: 10, signal: new AbortController().signal };
    await rig.engine.command('SYSTEM START TTL MERGES', bounds);
    const bodies = async () => {
      const rows = await rig.database.query<{ Body: string }>('SELECT Body FROM otel_logs ORDER BY Body');
      return rows.map(({ Body }) => Body).join();
    };
    while ((await bodies()) !== 'younger') await new Promise((resolve) => setTimeout(resolve, 20));
    await rig.engine.command('SYSTEM STOP TTL MERGES', bounds);
    t.pass('the engine drops what is older than 30 days');
  },
);

test.serial('a batch whose answer got lost can be inserted again under its name', async (t) => {
  await rig.empty('otel_traces');
  for (let tries = 0; tries < 2; tries += 1)
    await rig.database.insert('otel_traces', [span(), span({ SpanId: 'c'.repeat(16) })], {
      token: 'batch-1',
    });
  await rig.database.insert('otel_traces', [span()], { token: 'batch-2' });
  const [row] = await rig.database.query('SELECT count() AS spans FROM otel_traces');
  t.deepEqual(row, { spans: '3' });
});

test.serial(
  '[O20] however it is written, no statement of a person gives a file away or changes a table',
  async (t) => {
    await rig.empty('otel_logs');
    await rig.database.insert('otel_logs', [{ Timestamp: iso(), Body: 'kept' }]);
    const path = `${rig.folder}/secret.csv`;
    writeFileSync(path, 'canary\n');
    const name = fc.constantFrom('file', '`file`', '"file"', 'FILE', '“file”', 'fi/**/le', 'length');
    const glue = fc.constantFrom('', ' ', '/**/', '\n', "/* ' */", '-- (\n');
    const given = fc.constantFrom(`('${path}')`, `('${path}', 'CSV', 'a String')`, "('a')");
    const call = fc.tuple(name, glue, given).map((parts) => parts.join(''));
    const around = fc.constantFrom(
      ...[
        '# ',
        "_CAST(#, 'String')",
        'lower(#)',
        '* FROM #',
        '* REPLACE (# AS Body) FROM otel_logs',
        'arrayMap(x -> #, [1])',
      ],
      ...[
        `arrayMap(file, ['${path}'])`,
        `a APPLY(file) FROM (SELECT '${path}' AS a)`,
        '1 UNION ALL SELECT #',
        '1; SELECT #',
      ],
      ...[
        '1 PARALLEL WITH DROP TABLE otel_logs',
        '1; TRUNCATE otel_logs',
        "'' /* ' */, # -- '",
        "'\\'', #, '",
        '‘’, #, ‘’',
      ],
    );
    const statement = fc
      .tuple(fc.constantFrom('SELECT ', 'WITH 1 AS one SELECT ', '(SELECT ', 'EXPLAIN SELECT '), around, call)
      .map(
        ([first, form, file]) =>
          `${first}${form.replace('#', () => file)}${first.startsWith('(') ? ')' : ''}`,
      );
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(statement, async (sql) => {
        const told = await rig.database.ask(sql, 5, { maxSeconds: 5 }).then(
          (table) => {
            answered += 1;
            return JSON.stringify(table.rows);
          },
          (error) => (isCoded(error) ? '' : String(error)),
        );
        return !told.includes('canary') && !told.includes('Error');
      }),
      // Most generated statements are refused; the first is one that must be answered.
      { numRuns: runs(300), examples: [["SELECT length('a')"]] },
    );
    t.true(answered > 0, 'some of them are answered');
    t.deepEqual(await rig.database.query('SELECT Body FROM otel_logs'), [{ Body: 'kept' }]);
  },
);

test('[O7] the names of a part that were cut short anywhere are not taken for whole', (t) => {
  const names = 'columns substreams version: 1\n2 columns:\n1 substreams for column `t`:\n\tt\n';
  const whole = `${names}2 substreams for column \`b\`:\n\tb.size\n\tb\n`;
  t.true(areSubstreamsWhole(whole));
  for (let length = 0; length < whole.length; length += 1)
    t.false(areSubstreamsWhole(whole.slice(0, length)), `after ${length} bytes`);
});
