import { SIGNAL_TABLES, type SignalTable } from '../../../core/adapters/columnar-database.ts';

/** Version of the tables that are made here; it stands in a table's comment. */
export const SCHEMA_VERSION = 1;

type Columns = readonly (readonly [name: string, type: string])[];

interface TableDefinition {
  readonly columns: Columns;
  /** The column by which a row belongs to a day, and grows old. */
  readonly time: 'Timestamp' | 'TimeUnix';
  readonly orderBy: string;
  readonly indices: readonly string[];
}

const NAME = 'LowCardinality(String)';
const MAP = 'Map(LowCardinality(String), String)';
const TIME = 'DateTime64(9)';

const logs: TableDefinition = {
  columns: [
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
  time: 'Timestamp',
  orderBy: '(toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)',
  indices: [
    'INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1',
    'INDEX idx_body Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8',
  ],
};

const traces: TableDefinition = {
  columns: [
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
  time: 'Timestamp',
  orderBy: '(ServiceName, SpanName, toDateTime(Timestamp))',
  indices: ['INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1'],
};

const exemplars: Columns = [
  ['Exemplars.FilteredAttributes', `Array(${MAP})`],
  ['Exemplars.TimeUnix', `Array(${TIME})`],
  ['Exemplars.Value', 'Array(Float64)'],
  ['Exemplars.SpanId', 'Array(String)'],
  ['Exemplars.TraceId', 'Array(String)'],
];

/** @param value the columns in which one kind of metric differs from another */
function metric(value: Columns): TableDefinition {
  return {
    columns: [
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
    ],
    time: 'TimeUnix',
    orderBy: '(ServiceName, MetricName, toStartOfHour(TimeUnix), cityHash64(Attributes), TimeUnix)',
    indices: [],
  };
}

const extremes: Columns = [
  ['Min', 'Float64'],
  ['Max', 'Float64'],
  ['AggregationTemporality', 'Int32'],
];

/** The signal tables as Holdfast makes them: those of ClickStack, with times that keep their nanoseconds. */
export const TABLES: Readonly<Record<SignalTable, TableDefinition>> = {
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

/** What a table of ours says of itself in its comment. */
export function commentOf(retentionDays: number): string {
  return `Holdfast schema ${SCHEMA_VERSION}, ${retentionDays} days`;
}

/** @returns the version and days of a table of ours; undefined for one of somebody else */
export function ourComment(comment: string): { readonly version: number; readonly days: number } | undefined {
  const [, version, days] = /^Holdfast schema (\d+), (\d+) days$/.exec(comment) ?? [];
  return version === undefined ? undefined : { version: Number(version), days: Number(days) };
}

const DURABLE = ', fsync_after_insert = 1, fsync_part_directory = 1';

/**
 * @param table with its database
 * @param isDurable an insert is on the disk when it is acknowledged, not only in the machine's memory
 */
export function createStatement(
  name: SignalTable,
  table: string,
  retentionDays: number,
  isDurable: boolean,
): string {
  const { columns, time, orderBy, indices } = TABLES[name];
  const lines = [...columns.map(([column, type]) => `\`${column}\` ${type}`), ...indices];
  return `CREATE TABLE IF NOT EXISTS ${table} (${lines.join(', ')})
ENGINE = MergeTree PARTITION BY toDate(${time}) ORDER BY ${orderBy} TTL ${ttl(name, retentionDays)}
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000${isDurable ? DURABLE : ''} COMMENT '${commentOf(retentionDays)}'`;
}

export function ttl(name: SignalTable, retentionDays: number): string {
  return `toDateTime(${TABLES[name].time}) + toIntervalDay(${retentionDays})`;
}

export function isSignalTable(name: string): name is SignalTable {
  return (SIGNAL_TABLES as readonly string[]).includes(name);
}
