/** Names and types of a table's columns, in their order. */
export type Columns = readonly (readonly [name: string, type: string])[];

/** `ServiceName` of the span that a probe sends begins with this; no application has such a name (O27). */
export const PROBE_SERVICE = 'holdfast-probe';

/** `ServiceName` of rows that Holdfast writes itself. They do not show that any other producer still sends. */
export const OWN_SERVICE = 'holdfast';
/** `ServiceName` of the samples that `holdfast heartbeat` sends. */
export const HEARTBEAT_SERVICE = 'holdfast-heartbeat';

const NAME = 'LowCardinality(String)';
const MAP = 'Map(LowCardinality(String), String)';
const TIME = 'DateTime64(9)';

const METRIC: Columns = [
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
];

const EXTREMES: Columns = [
  ['Min', 'Float64'],
  ['Max', 'Float64'],
  ['AggregationTemporality', 'Int32'],
];

const EXEMPLARS: Columns = [
  ['Exemplars.FilteredAttributes', `Array(${MAP})`],
  ['Exemplars.TimeUnix', `Array(${TIME})`],
  ['Exemplars.Value', 'Array(Float64)'],
  ['Exemplars.SpanId', 'Array(String)'],
  ['Exemplars.TraceId', 'Array(String)'],
];

/**
 * The tables that hold the signals (O6), with the columns that Holdfast gives them: those of ClickStack, with times that
 * keep their nanoseconds. Tables that somebody else made may lack some of them, and have other types.
 */
export const SIGNAL_COLUMNS = {
  otel_logs: [
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
  ],
  otel_traces: [
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
  ],
  otel_metrics_gauge: [...METRIC, ['Value', 'Float64'], ...EXEMPLARS],
  otel_metrics_sum: [
    ...METRIC,
    ['Value', 'Float64'],
    ['AggregationTemporality', 'Int32'],
    ['IsMonotonic', 'Bool'],
    ...EXEMPLARS,
  ],
  otel_metrics_histogram: [
    ...METRIC,
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['BucketCounts', 'Array(UInt64)'],
    ['ExplicitBounds', 'Array(Float64)'],
    ...EXTREMES,
    ...EXEMPLARS,
  ],
  otel_metrics_exponential_histogram: [
    ...METRIC,
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['Scale', 'Int32'],
    ['ZeroCount', 'UInt64'],
    ['PositiveOffset', 'Int32'],
    ['PositiveBucketCounts', 'Array(UInt64)'],
    ['NegativeOffset', 'Int32'],
    ['NegativeBucketCounts', 'Array(UInt64)'],
    ...EXTREMES,
    ...EXEMPLARS,
  ],
  otel_metrics_summary: [
    ...METRIC,
    ['Count', 'UInt64'],
    ['Sum', 'Float64'],
    ['ValueAtQuantiles.Quantile', 'Array(Float64)'],
    ['ValueAtQuantiles.Value', 'Array(Float64)'],
  ],
} as const satisfies Readonly<Record<string, Columns>>;

export const SIGNAL_TABLES = [
  'otel_logs',
  'otel_traces',
  'otel_metrics_gauge',
  'otel_metrics_sum',
  'otel_metrics_histogram',
  'otel_metrics_exponential_histogram',
  'otel_metrics_summary',
] as const satisfies readonly (keyof typeof SIGNAL_COLUMNS)[];

export type SignalTable = keyof typeof SIGNAL_COLUMNS;
