import test from 'ava';
import fc from 'fast-check';
import { decode, type Signal } from '../../../src/plugins/otlp/decode/decode.ts';
import { build } from '../../../src/plugins/otlp/decode/protobuf.ts';
import { readRows } from '../../../src/plugins/otlp/decode/row-writer.ts';
import type { Decoded } from '../../../src/plugins/otlp/decode/rows.ts';
import { BodyInvalid } from '../../../src/plugins/otlp/decode/values.ts';
import { runs } from '../../support/runs.ts';
import { bodies, inLogs, inMetrics, inTraces, time } from './arbitraries.ts';

const NOW = 1_767_225_600_000;
const AT = `${NOW}000000`;
const TRACE = '5b8efff798038103d269b633813fc60c';
const SPAN = 'eee19b7ec3c1b174';

const types = build();
const TYPES = { traces: 'TraceRequest', metrics: 'MetricsRequest', logs: 'LogsRequest' } as const;

const json = (signal: Signal, body: unknown) =>
  decode(signal, 'json', Buffer.from(JSON.stringify(body)), NOW);

/** The rows as the database will read them. */
function read({ rows }: Decoded): unknown[] {
  return rows.map(({ table, layout, text, day }) => ({
    table,
    day,
    ...readRows(layout, Buffer.from(text))[0],
  }));
}

const aSpan = (fields: object = {}) => ({
  traceId: TRACE,
  spanId: SPAN,
  name: 'n',
  startTimeUnixNano: AT,
  ...fields,
});

/** What JSON writes as hex or base64, protobuf has as bytes. */
function toBytes(value: unknown, key = ''): unknown {
  if (/^(trace|span|parentSpan)Id$/.test(key)) return Buffer.from(String(value), 'hex');
  if (key === 'bytesValue') return Buffer.from(String(value), 'base64');
  if (Array.isArray(value)) return value.map((one) => toBytes(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toBytes(one, name)]));
}

function protobuf(signal: Signal, body: object): Promise<Decoded> {
  const type = types.lookupType(TYPES[signal]);
  const bytes = type.encode(type.fromObject(toBytes(body) as object)).finish();
  return decode(signal, 'protobuf', Buffer.from(bytes), NOW);
}

test('[O4,O6] a span has all its fields in the row: events, links, status, kind, scope and what was dropped', async (t) => {
  const decoded = await json('traces', {
    resourceSpans: [
      {
        resource: {
          attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }],
          droppedAttributesCount: 2,
        },
        schemaUrl: 'https://schema',
        scopeSpans: [
          {
            scope: { name: 'lib', version: '1.2', attributes: [{ key: 's', value: { boolValue: true } }] },
            spans: [
              {
                traceId: TRACE.toUpperCase(),
                spanId: SPAN,
                parentSpanId: '00f067aa0ba902b7',
                traceState: 'a=b',
                name: 'buy',
                kind: 3,
                startTimeUnixNano: AT,
                endTimeUnixNano: `${NOW}001234`,
                attributes: [
                  { key: 'big', value: { intValue: '9007199254740993' } },
                  {
                    key: 'list',
                    value: { arrayValue: { values: [{ intValue: 1 }, { stringValue: 'x' }, {}] } },
                  },
                  {
                    key: 'map',
                    value: { kvlistValue: { values: [{ key: 'k', value: { doubleValue: 'NaN' } }] } },
                  },
                  { key: 'raw', value: { bytesValue: 'AQID' } },
                  { key: 'nothing', value: {} },
                  { key: '__proto__', value: { stringValue: 'kept' } },
                ],
                droppedAttributesCount: 1,
                droppedEventsCount: 3,
                flags: 257,
                events: [
                  {
                    timeUnixNano: AT,
                    name: 'e',
                    attributes: [{ key: 'a', value: { doubleValue: 0.5 } }],
                    droppedAttributesCount: 4,
                  },
                ],
                links: [{ traceId: TRACE, spanId: SPAN, traceState: 'l=1', attributes: [] }],
                status: { code: 2, message: 'broke' },
                unheardOf: { of: 1 },
              },
            ],
          },
        ],
      },
    ],
  });
  t.is(decoded.refused, 0);
  t.deepEqual(decoded.services, ['shop']);
  const [row] = read(decoded) as [Record<string, unknown>];
  t.like(row, {
    table: 'otel_traces',
    ServiceName: 'shop',
    ResourceAttributes: { 'service.name': 'shop', 'otel.dropped_attributes_count': '2' },
    ScopeName: 'lib',
    ScopeVersion: '1.2',
    Timestamp: AT,
    TraceId: TRACE,
    SpanId: SPAN,
    ParentSpanId: '00f067aa0ba902b7',
    TraceState: 'a=b',
    SpanName: 'buy',
    SpanKind: 'Client',
    Duration: '1234',
    StatusCode: 'Error',
    StatusMessage: 'broke',
  });
  t.deepEqual(Object.entries(row.SpanAttributes as object), [
    ['big', '9007199254740993'],
    ['list', '[1,"x",null]'],
    ['map', '{"k":"NaN"}'],
    ['raw', 'AQID'],
    ['nothing', ''],
    ['__proto__', 'kept'],
    ['otel.dropped_attributes_count', '1'],
    ['otel.dropped_events_count', '3'],
  ]);
  t.deepEqual(row['Events.Attributes'], [{ a: '0.5', 'otel.dropped_attributes_count': '4' }]);
  t.deepEqual(row['Links.TraceState'], ['l=1']);
});

test('[O4] what is malformed is refused one by one with its reason, the others are taken', async (t) => {
  const decoded = await json(
    'traces',
    inTraces(
      aSpan(),
      aSpan({ traceId: 'xyz' }),
      aSpan({ traceId: '0'.repeat(32) }),
      aSpan({ spanId: undefined }),
      aSpan({ parentSpanId: 'abc' }),
      aSpan({ startTimeUnixNano: undefined }),
      aSpan({ startTimeUnixNano: `${NOW + 25 * 3_600_000}000000` }),
      aSpan({ startTimeUnixNano: '99999999999999999999' }),
      aSpan({ startTimeUnixNano: -1 }),
      aSpan({ name: 7 }),
      aSpan({ links: [{ traceId: TRACE, spanId: 'no' }] }),
      aSpan({ parentSpanId: '0000000000000000' }),
    ),
  );
  t.is(decoded.rows.length, 2);
  t.is(decoded.refused, 10);
  t.is(decoded.reasons['traceId is not 32 hex digits'], 1);
  t.is(decoded.reasons['traceId is all zeros'], 1);
  t.is(decoded.reasons['spanId is missing'], 1);
  t.is(
    Object.values(decoded.reasons).reduce((sum, count) => sum + count),
    10,
  );
});

test('[O4] a list that is none refuses all that it stands for, and a body that is none everything', async (t) => {
  const group = { resource: { attributes: 'no' }, scopeSpans: [{ spans: [aSpan(), aSpan()] }] };
  const decoded = await json('traces', { resourceSpans: [group, ...inTraces(aSpan()).resourceSpans] });
  t.is(decoded.rows.length, 1);
  t.deepEqual(decoded.reasons, { 'attributes is no list': 2 });
  for (const body of ['', '[]', 'null', '7', '{"resourceSpans":{}}', '{"resourceSpans":[', '{"a":"\xff'])
    await t.throwsAsync(decode('traces', 'json', Buffer.from(body, 'latin1'), NOW), {
      instanceOf: BodyInvalid,
    });
  t.is((await json('traces', {})).rows.length, 0);
});

test('[O4] nesting, counts and lengths are bounded', async (t) => {
  let deep: unknown = { stringValue: 'x' };
  for (let level = 0; level < 20; level += 1) deep = { arrayValue: { values: [deep] } };
  const many = Array.from({ length: 1_025 }, (_, at) => ({ key: `k${at}`, value: { intValue: at } }));
  const decoded = await json(
    'traces',
    inTraces(
      aSpan({ attributes: [{ key: 'deep', value: deep }] }),
      aSpan({ attributes: many }),
      aSpan({ name: 'n'.repeat(10_000) }),
      aSpan({ attributes: [{ key: 'long', value: { stringValue: 'x'.repeat(1_100_000) } }] }),
    ),
  );
  t.is(decoded.refused, 3);
  t.is((read(decoded)[0] as { SpanName: string }).SpanName.length, 4_097);
  const echoed = { attributes: [{ key: 'long', value: { stringValue: 'x'.repeat(1_000_000) } }] };
  const spans = Array.from({ length: 200 }, () => aSpan());
  const amplified = await json('traces', {
    resourceSpans: [{ resource: echoed, scopeSpans: [{ spans }] }, ...inTraces(aSpan()).resourceSpans],
  });
  t.is(amplified.rows.length, 68, 'a small body does not become gigabytes, and what still fits is taken');
  t.deepEqual(amplified.reasons, { 'the rows of its request need more than 67108864 characters': 133 });
  const crowd = Buffer.from(`{"resourceSpans":[${'{},'.repeat(2_100_000)}{}]}`);
  await t.throwsAsync(decode('traces', 'json', crowd, NOW), { message: /more than 1000000 objects/ });
  const empties = Buffer.alloc(4_200_000, Buffer.from([0x0a, 0x00]));
  await t.throwsAsync(decode('traces', 'protobuf', empties, NOW), { message: /more than 1000000 messages/ });
});

test('[O4,O6] every kind of metric has its table and its columns', async (t) => {
  const point = { timeUnixNano: AT, attributes: [{ key: 'a', value: { stringValue: 'b' } }] };
  const exemplar = { timeUnixNano: AT, asDouble: 1.5, traceId: TRACE, spanId: SPAN, filteredAttributes: [] };
  const decoded = await json(
    'metrics',
    inMetrics(
      { name: 'g', unit: '1', gauge: { dataPoints: [{ ...point, asInt: '-3', exemplars: [exemplar] }] } },
      {
        name: 's',
        sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ ...point, asDouble: 0.1 }] },
      },
      {
        name: 'h',
        histogram: {
          aggregationTemporality: 1,
          dataPoints: [
            { ...point, count: '3', sum: 6, min: 1, max: 3, bucketCounts: ['1', 2], explicitBounds: [2] },
            { ...point, count: '3', bucketCounts: [1, 2, 3], explicitBounds: [2] },
          ],
        },
      },
      {
        name: 'e',
        exponentialHistogram: {
          dataPoints: [
            {
              ...point,
              count: 5,
              scale: -2,
              zeroCount: 1,
              positive: { offset: -1, bucketCounts: ['2'] },
              negative: { offset: 3, bucketCounts: [2] },
            },
          ],
        },
      },
      {
        name: 'q',
        summary: {
          dataPoints: [{ ...point, count: 2, sum: 3, quantileValues: [{ quantile: 0.5, value: 1 }] }],
        },
      },
      { name: 'gone', gauge: { dataPoints: [{ ...point, flags: 1 }] } },
      { name: 'empty', gauge: { dataPoints: [point] } },
    ),
  );
  const rows = read(decoded) as Record<string, unknown>[];
  t.deepEqual(
    rows.map(({ table, MetricName }) => [table, MetricName]),
    [
      ['otel_metrics_gauge', 'g'],
      ['otel_metrics_sum', 's'],
      ['otel_metrics_histogram', 'h'],
      ['otel_metrics_exponential_histogram', 'e'],
      ['otel_metrics_summary', 'q'],
      ['otel_metrics_gauge', 'gone'],
    ],
  );
  t.deepEqual(decoded.reasons, {
    'bucketCounts and explicitBounds do not fit each other': 1,
    'the point has no value': 1,
  });
  t.like(rows[0], { Value: -3, TimeUnix: AT, Attributes: { a: 'b' } });
  t.deepEqual(rows[0]?.['Exemplars.TraceId'], [TRACE]);
  t.like(rows[1], { Value: 0.1, AggregationTemporality: 2, IsMonotonic: true });
  t.like(rows[2], { Count: '3', Sum: 6, Min: 1, Max: 3, AggregationTemporality: 1 });
  t.deepEqual(rows[2]?.BucketCounts, ['1', '2']);
  t.like(rows[3], { Scale: -2, ZeroCount: '1', PositiveOffset: -1, NegativeOffset: 3 });
  t.deepEqual(rows[4]?.['ValueAtQuantiles.Value'], [1]);
  t.is(rows[5]?.Value, 'nan');
});

test('[O4,O6] a log record has its body of any kind, and a time even where it brings none', async (t) => {
  const decoded = await json(
    'logs',
    inLogs(
      {
        timeUnixNano: AT,
        severityNumber: 17,
        severityText: 'ERROR',
        body: { stringValue: 'b' },
        flags: 1,
        traceId: TRACE,
      },
      {
        observedTimeUnixNano: AT,
        body: { kvlistValue: { values: [{ key: 'k', value: { intValue: 1 } }] } },
        eventName: 'ev',
      },
      { traceId: '' },
      { traceId: 'no' },
      { severityNumber: 24 },
      { severityNumber: 25 },
    ),
  );
  t.is(decoded.refused, 1);
  const rows = read(decoded) as Record<string, unknown>[];
  t.like(rows[0], { SeverityNumber: 17, SeverityText: 'ERROR', Body: 'b', TraceFlags: 1, TraceId: TRACE });
  t.like(rows[1], { Timestamp: AT, Body: '{"k":1}', EventName: 'ev' });
  t.like(rows[2], { Timestamp: AT, Body: '' });
  const severities = rows.slice(3).map(({ SeverityNumber }) => SeverityNumber);
  t.deepEqual(severities, [24, 0], 'the specification ends at 24');
});

test('[O4] half a character, which the database would refuse with its whole batch, is replaced', async (t) => {
  const body = JSON.stringify(inTraces(aSpan({ name: 'X' }))).replace('"X"', '"\\ud800"');
  const decoded = await decode('traces', 'json', Buffer.from(body), NOW);
  t.is((read(decoded)[0] as { SpanName: string }).SpanName, '\ufffd');
});

test('[O4] protobuf that is cut short anywhere is refused or is a shorter request, and never anything else', async (t) => {
  const type = types.lookupType('TraceRequest');
  const whole = Buffer.from(type.encode(type.fromObject(toBytes(inTraces(aSpan())) as object)).finish());
  for (let length = 1; length < whole.length; length += 1)
    await t.throwsAsync(decode('traces', 'protobuf', whole.subarray(0, length), NOW), {
      instanceOf: BodyInvalid,
    });
  t.is((await decode('traces', 'protobuf', whole, NOW)).rows.length, 1);
});

for (const [signal, arbitrary] of bodies(fc.oneof(fc.constant(AT), time), fc.constant(AT))) {
  test(`[O4] ${signal}: JSON and protobuf of the same request give the same rows and the same refusals`, async (t) => {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (body) => {
        const [one, other] = await Promise.all([json(signal, body), protobuf(signal, body)]);
        t.deepEqual(read(one), read(other));
        t.deepEqual(one.reasons, other.reasons);
      }),
      { numRuns: runs(300) },
    );
  });
}

test('[O4] no JSON whatever does more than be refused', async (t) => {
  const keys = fc.constantFrom(
    ...[
      'resourceSpans',
      'scopeSpans',
      'spans',
      'resource',
      'attributes',
      'key',
      'value',
      'events',
      'kind',
      'traceId',
    ],
  );
  const anything = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'medium' },
      fc.constantFrom(null, true, 7, -1, 'x', TRACE, SPAN, AT),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(keys, tie('any'), { maxKeys: 4 }),
    ),
  })).any;
  await fc.assert(
    fc.asyncProperty(anything, async (inner) => {
      for (const body of [
        inner,
        { resourceSpans: inner },
        { resourceSpans: [{ scopeSpans: [{ spans: inner }] }] },
      ])
        await json('traces', body).catch((error) => t.true(error instanceof BodyInvalid, String(error)));
    }),
    { numRuns: runs(500) },
  );
});
