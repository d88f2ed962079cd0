import type { SignalTable, TableSchema } from '../columnar-database.ts';

/** Names and types, in the order in which a table has them. */
export type Columns = readonly (readonly [name: string, type: string])[];

const NAME = 'LowCardinality(String)';
const MAP = 'Map(LowCardinality(String), String)';
const TIME = 'DateTime64(9)';

const logs: Columns = [
  ['Timestamp', TIME],
  ['TraceId', 'String'],
  ['SpanId', 'String'],
  ['TraceFlags', 'UInt8'],
  ['SeverityText', NAME],
  ['SeverityNumber', 'UInt8'],
  ['ServiceName', NAME],
  ['Body', 'String'],
  ['ResourceSchemaUrl', NAME],
  ['ResourceAttributes', MAP],
  ['ScopeSchemaUrl', NAME],
  ['ScopeName', 'String'],
  ['ScopeVersion', NAME],
  ['ScopeAttributes', MAP],
  ['LogAttributes', MAP],
  ['EventName', 'String'],
];

const traces: Columns = [
  ['Timestamp', TIME],
  ['TraceId', 'String'],
  ['SpanId', 'String'],
  ['ParentSpanId', 'String'],
  ['TraceState', 'String'],
  ['SpanName', NAME],
  ['SpanKind', NAME],
  ['ServiceName', NAME],
  ['ResourceAttributes', MAP],
  ['ScopeName', 'String'],
  ['ScopeVersion', 'String'],
  ['SpanAttributes', MAP],
  ['Duration', 'UInt64'],
  ['StatusCode', NAME],
  ['StatusMessage', 'String'],
  ['Events.Timestamp', `Array(${TIME})`],
  ['Events.Name', `Array(${NAME})`],
  ['Events.Attributes', `Array(${MAP})`],
  ['Links.TraceId', 'Array(String)'],
  ['Links.SpanId', 'Array(String)'],
  ['Links.TraceState', 'Array(String)'],
  ['Links.Attributes', `Array(${MAP})`],
];

const exemplars: Columns = [
  ['Exemplars.FilteredAttributes', `Array(${MAP})`],
  ['Exemplars.TimeUnix', `Array(${TIME})`],
  ['Exemplars.Value', 'Array(Float64)'],
  ['Exemplars.SpanId', 'Array(String)'],
  ['Exemplars.TraceId', 'Array(String)'],
];

/** @param value the columns in which one kind of metric differs from another */
function metric(value: Columns): Columns {
  return [
    ['ResourceAttributes', MAP],
    ['ResourceSchemaUrl', 'String'],
    ['ScopeName', 'String'],
    ['ScopeVersion', 'String'],
    ['ScopeAttributes', MAP],
    ['ScopeDroppedAttrCount', 'UInt32'],
    ['ScopeSchemaUrl', 'String'],
    ['ServiceName', NAME],
    ['MetricName', 'String'],
    ['MetricDescription', 'String'],
    ['MetricUnit', 'String'],
    ['Attributes', MAP],
    ['StartTimeUnix', TIME],
    ['TimeUnix', TIME],
    ['Flags', 'UInt32'],
    ...value,
  ];
}

const extremes: Columns = [
  ['Min', 'Float64'],
  ['Max', 'Float64'],
  ['AggregationTemporality', 'Int32'],
];

/** The columns of a `SignalRow`, with the types that Holdfast gives them: those of ClickStack, with times that keep their nanoseconds. */
export const SIGNAL_COLUMNS: Readonly<Record<SignalTable, Columns>> = {
  otel_logs: logs,
  otel_traces: traces,
  otel_metrics_gauge: metric([['Value', 'Float64'], ...exemplars]),
  otel_metrics_sum: metric([
    ['Value', 'Float64'],
    ['AggregationTemporality', 'Int32'],
    ['IsMonotonic', 'Bool'],
    ...exemplars,
  ]),
  otel_metrics_histogram: metric([
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['BucketCounts', 'Array(UInt64)'],
    ['ExplicitBounds', 'Array(Float64)'],
    ...extremes,
    ...exemplars,
  ]),
  otel_metrics_exponential_histogram: metric([
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['Scale', 'Int32'],
    ['ZeroCount', 'UInt64'],
    ['PositiveOffset', 'Int32'],
    ['PositiveBucketCounts', 'Array(UInt64)'],
    ['NegativeOffset', 'Int32'],
    ['NegativeBucketCounts', 'Array(UInt64)'],
    ...extremes,
    ...exemplars,
  ]),
  otel_metrics_summary: metric([
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['ValueAtQuantiles.Quantile', 'Array(Float64)'],
    ['ValueAtQuantiles.Value', 'Array(Float64)'],
  ]),
};

/** What a table is like as long as nobody has looked at it. */
export function ownSchema(table: SignalTable): TableSchema {
  const columns = new Map(SIGNAL_COLUMNS[table]);
  return { table, engine: 'MergeTree', columns, enumNames: 'short', isOurs: true };
}
