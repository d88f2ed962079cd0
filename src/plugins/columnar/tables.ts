import type { SignalTable } from '../../core/contracts/columnar-tables.ts';
import { SIGNAL_COLUMNS } from '../../core/contracts/columnar-tables.ts';

/** Version of the tables that are made here; it stands in a table's comment. */
export const SCHEMA_VERSION = 1;

interface TableDefinition {
  /** The column with the time that decides a row's partition and retention. */
  readonly time: 'Timestamp' | 'TimeUnix';
  readonly orderBy: string;
  readonly indices: readonly string[];
}

const logs: TableDefinition = {
  time: 'Timestamp',
  orderBy: '(toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)',
  indices: [
    'INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1',
    'INDEX idx_body Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8',
  ],
};

const traces: TableDefinition = {
  time: 'Timestamp',
  orderBy: '(ServiceName, SpanName, toDateTime(Timestamp))',
  indices: ['INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1'],
};

const metric: TableDefinition = {
  time: 'TimeUnix',
  orderBy: '(ServiceName, MetricName, toStartOfHour(TimeUnix), cityHash64(Attributes), TimeUnix)',
  indices: [],
};

/** How Holdfast makes the signal tables. */
export const TABLES: Readonly<Record<SignalTable, TableDefinition>> = {
  otel_logs: logs,
  otel_traces: traces,
  otel_metrics_gauge: metric,
  otel_metrics_sum: metric,
  otel_metrics_histogram: metric,
  otel_metrics_exponential_histogram: metric,
  otel_metrics_summary: metric,
};

/** The comment of a table that Holdfast makes. */
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
  const { time, orderBy, indices } = TABLES[name];
  const lines = [...SIGNAL_COLUMNS[name].map(([column, type]) => `\`${column}\` ${type}`), ...indices];
  return `CREATE TABLE IF NOT EXISTS ${table} (${lines.join(', ')})
ENGINE = MergeTree PARTITION BY toDate(${time}) ORDER BY ${orderBy} TTL ${ttl(name, retentionDays)}
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000${isDurable ? DURABLE : ''} COMMENT '${commentOf(retentionDays)}'`;
}

export function ttl(name: SignalTable, retentionDays: number): string {
  return `toDateTime(${TABLES[name].time}) + toIntervalDay(${retentionDays})`;
}
