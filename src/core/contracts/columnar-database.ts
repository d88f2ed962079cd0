import { defineToken, type Token } from './token.ts';

/** The tables that hold the signals (O6). */
export const SIGNAL_TABLES = [
  'otel_logs',
  'otel_traces',
  'otel_metrics_gauge',
  'otel_metrics_sum',
  'otel_metrics_histogram',
  'otel_metrics_exponential_histogram',
  'otel_metrics_summary',
] as const;
export type SignalTable = (typeof SIGNAL_TABLES)[number];

/**
 * How `ServiceName` begins of the span by which a probe shows that spans arrive; it is no application's. When one is in
 * `otel_traces`, the pipeline is wired (O27).
 */
export const PROBE_SERVICE = 'holdfast-probe';

/** `ServiceName` of our own rows, the watchdog's lines among them: they do not show that anybody else still sends. */
export const OWN_SERVICE = 'holdfast';

/**
 * One row of a signal table, by the column names of our own schema. Times are decimal strings of nanoseconds since the
 * epoch, 64-bit integers are decimal strings, maps are plain objects of strings. The adapter fits it to the columns that
 * the table really has: it leaves out those that are missing, and turns times into the column's own precision.
 */
export type SignalRow = Readonly<Record<string, unknown>>;

/** Rows that are text already, so that an insert need not touch them: `writerOf` the table's schema wrote them. */
export interface WrittenRows {
  /** How many; at most 50,000. */
  readonly rows: number;
  /** What they were fitted to: `RowWriter.fit`. */
  readonly fit: string;
  /** Lines of `JSONCompactEachRow`; not changed until the insert is over. */
  readonly bytes: Uint8Array;
}

/** What a signal table really is, as far as queries of our own must know it. */
export interface TableSchema {
  readonly table: SignalTable;
  /** E.g. `MergeTree`. */
  readonly engine: string;
  /** Names and types of its columns, e.g. `TimeUnix` → `DateTime64(9)` or, in other schemas, `DateTime`. */
  readonly columns: ReadonlyMap<string, string>;
  /** Which names it holds in `SpanKind` and `StatusCode`: `Server`, `Ok`, or the older `SPAN_KIND_SERVER`, `STATUS_CODE_OK`. */
  readonly enumNames: 'short' | 'prefixed';
  /** Whether Holdfast made it; one of somebody else is used as it is. */
  readonly isOurs: boolean;
}

/** Columns that hold attributes by name. */
export type AttributesColumn = 'Attributes' | 'LogAttributes' | 'ResourceAttributes' | 'SpanAttributes';

/**
 * SQL for the text of an attribute, empty where a row has none. Attributes are maps, or in some schemas of ClickStack and of
 * the collector's exporter of the type JSON, where a dotted name is a path.
 *
 * @param key SQL of its name: a placeholder, or a text between quotes
 */
export function attribute(
  { columns }: Pick<TableSchema, 'columns'>,
  column: AttributesColumn,
  key: string,
): string {
  return isJson(columns.get(column))
    ? `ifNull(toString(getSubcolumn(${column}, ${key})), '')`
    : `${column}[${key}]`;
}

function isJson(type = ''): boolean {
  return /^(?:JSON\b|Object\()/.test(type);
}

/** A table whose engine is not the one that is expected. */
export interface EngineDrift {
  readonly table: string;
  readonly engine: string;
  readonly expected: string;
}

/** What a parameter of a query may be; it is bound by name as `{name:Type}`, never pasted into the text. */
export type QueryParameter = string | number | boolean | readonly string[];

export interface QueryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Ends the work in the database too; seconds, 10 unless given. */
  readonly maxSeconds?: number | undefined;
}

export interface InsertOptions extends QueryOptions {
  /**
   * Names the batch. A batch of the same name that the table has taken before is not taken again, as far as the table
   * remembers (`non_replicated_deduplication_window`); so an insert whose answer got lost can be made again.
   */
  readonly token?: string | undefined;
}

/** What a person's own query gave. 64-bit integers are strings. */
export interface QueryTable {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** There were more than the limit. */
  readonly truncated: boolean;
  readonly elapsedMs: number;
}

/** Where logs, metrics and spans are kept: a server, or the engine inside this process. */
export interface ColumnarDatabase {
  readonly kind: 'embedded' | 'remote';
  /** For people: host and port, or the folder; without credentials. */
  readonly place: string;
  /**
   * Runs a query of our own.
   *
   * @param sql with parameters as `{name:Type}`
   * @returns its rows; 64-bit integers are strings
   * @throws HF_COLUMNAR_UNREACHABLE, HF_COLUMNAR_CREDENTIALS, HF_COLUMNAR_ANSWER, HF_COLUMNAR_BUSY, HF_COLUMNAR_QUERY, HF_COLUMNAR_TIMEOUT;
   * HF_COLUMNAR_DAMAGED; of an embedded one that could not be opened HF_COLUMNAR_FOLDER, HF_COLUMNAR_ENGINE_MISSING
   */
  query<R extends object = Record<string, unknown>>(
    sql: string,
    parameters?: Readonly<Record<string, QueryParameter>>,
    options?: QueryOptions,
  ): Promise<readonly R[]>;
  /**
   * Runs a query that a person typed, on a connection that can only read: one statement, bounded in time, memory and rows.
   *
   * @param limit at most so many rows are given
   * @throws HF_COLUMNAR_REFUSED it is no single reading statement, or asks what must not be asked
   * @throws HF_COLUMNAR_UNREACHABLE, HF_COLUMNAR_QUERY, HF_COLUMNAR_TIMEOUT
   */
  ask(sql: string, limit: number, options?: QueryOptions): Promise<QueryTable>;
  /**
   * Inserts a batch, whole or not at all; when it resolves the rows are in the table.
   *
   * @param rows at most 50,000; what was written already must fit the table as `schema` gives it
   * @throws HF_COLUMNAR_SCHEMA (also: what was written fits the table no more), HF_COLUMNAR_FULL, and as `query` does. All
   *   but HF_COLUMNAR_QUERY may pass when tried again
   */
  insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    options?: InsertOptions,
  ): Promise<void>;
  /**
   * Looks at a signal table, once; later calls give the same until the connection was lost.
   *
   * @throws HF_COLUMNAR_SCHEMA there is no such table, and it could not be made
   * @throws HF_COLUMNAR_UNREACHABLE, HF_COLUMNAR_QUERY, HF_COLUMNAR_TIMEOUT
   */
  schema(table: SignalTable): Promise<TableSchema>;
  /** The tables of the database whose engine has drifted (O10); none is good. @throws as `query` does */
  drift(options?: QueryOptions): Promise<readonly EngineDrift[]>;
}

/** Provided by the plugin that speaks to the database. */
export const ColumnarDatabaseToken: Token<ColumnarDatabase> = defineToken('columnar.database');
