import { statSync } from 'node:fs';
import test from 'ava';
import { SIGNAL_TABLES, type SignalRow } from '../../../src/core/adapters/columnar-database.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';

let rig: ColumnarRig;
test.before(async () => {
  rig = await openColumnar();
});
test.after.always(() => rig.close());

const NOW = BigInt(Date.now()) * 1_000_000n;
const nanos = (before = 0n) => String(NOW - before + 123n);

function span(more: SignalRow = {}): SignalRow {
  return {
    Timestamp: nanos(),
    TraceId: 'a'.repeat(32),
    SpanId: 'b'.repeat(16),
    SpanName: 'POST /library_docs/mcp',
    SpanKind: 'Server',
    ServiceName: 'gateway',
    SpanAttributes: { 'http.target': '/library_docs/mcp' },
    Duration: '18446744073709551615',
    StatusCode: 'Ok',
    'Events.Timestamp': [nanos()],
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
      at: nanos(),
      Duration: '18446744073709551615',
      SpanAttributes: { 'http.target': '/library_docs/mcp' },
      events: ['an event'],
      first: nanos(),
    });
    t.is(statSync(`${rig.folder}/columnar`).mode & 0o777, 0o700);
  },
);

test.serial('[O6] what one producer sends cannot spoil the batch of another', async (t) => {
  await rig.empty('otel_metrics_gauge');
  const metric = { MetricName: 'm', ServiceName: 's', TimeUnix: nanos(), Value: 1 };
  await rig.database.insert('otel_metrics_gauge', [
    metric,
    { ...metric, TimeUnix: '18446744073709551615' },
    { ...metric, TimeUnix: 'no time' },
    { ...metric, Value: Number.NaN },
    { ...metric, Value: Number.POSITIVE_INFINITY },
    { ...metric, Attributes: { 'half \ud83d': 'a character \udc00' } },
    { ...metric, unknown: 'column' },
    { MetricName: 'm' },
  ]);
  const [row] = await rig.database.query(
    'SELECT count() AS rows, max(TimeUnix) AS newest, countIf(isNaN(Value)) AS nans, countIf(isInfinite(Value)) AS infinite FROM otel_metrics_gauge',
  );
  t.deepEqual(row, { rows: '8', newest: '2262-04-11 23:47:16.854775807', nans: '1', infinite: '1' });
});

test.serial('[O7] parameters are bound, never pasted', async (t) => {
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
    await t.throwsAsync(rig.database.query(slow, {}, { maxSeconds: 1 }), { code: 'HF_COLUMNAR_TIMEOUT' });
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

test.serial('[O6] a batch whose answer got lost can be inserted again under its name', async (t) => {
  await rig.empty('otel_traces');
  for (let tries = 0; tries < 2; tries += 1)
    await rig.database.insert('otel_traces', [span(), span({ SpanId: 'c'.repeat(16) })], {
      token: 'batch-1',
    });
  await rig.database.insert('otel_traces', [span()], { token: 'batch-2' });
  const [row] = await rig.database.query('SELECT count() AS spans FROM otel_traces');
  t.deepEqual(row, { spans: '3' });
});
