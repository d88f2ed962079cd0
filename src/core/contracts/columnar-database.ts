import type { SignalTable } from './columnar-tables.ts';
import { defineToken, type Token } from './token.ts';

/**
 * One row of a signal table, by the names of `SIGNAL_COLUMNS`. Times are ISO 8601 in UTC with up to nine decimals, e.g.
 * `2026-01-31T09:00:00.123456789Z`; 64-bit integers may be decimal strings, maps are plain objects of strings. Columns
 * that the table lacks are left out.
 */
export type SignalRow = Readonly<Record<string, unknown>>;

/** Many rows as text that goes into the table unchanged; it was written in another thread, not to hold up the main one. */
export interface WrittenRows {
  /** How many; at most 50,000. */
  readonly rows: number;
  /** The table as `schema` gave it. When it has become another since then, the insert is refused. */
  readonly schema: TableSchema;
  /** The columns of each line's values, in their order. */
  readonly columns: readonly string[];
  /** Lines of `JSONCompactEachRow`; not changed until the insert is over. */
  readonly bytes: Uint8Array;
}

/** How rows of a table must be written. Plain data, which may be sent to another thread. */
export interface TableShape {
  readonly table: SignalTable;
  /** Names and types of its columns, e.g. `TimeUnix` → `DateTime64(9)` or, in other schemas, `DateTime`. */
  readonly columns: ReadonlyMap<string, string>;
  /** Which names it holds in `SpanKind` and `StatusCode`: `Server`, `Ok`, or the older `SPAN_KIND_SERVER`, `STATUS_CODE_OK`. */
  readonly enumNames: 'short' | 'prefixed';
}

/** Columns that hold attributes by name. */
export type AttributesColumn = 'Attributes' | 'LogAttributes' | 'ResourceAttributes' | 'SpanAttributes';

/** A signal table as it really is. */
export interface TableSchema extends TableShape {
  /** E.g. `MergeTree`. */
  readonly engine: string;
  /** Whether Holdfast made it; a table of somebody else is used as it is. */
  readonly isOurs: boolean;
  /**
   * SQL for the text of an attribute, empty where a row has none. It hides whether the table keeps attributes as a map or
   * as the type JSON.
   *
   * @param key SQL of its name: a placeholder, or a text between quotes
   */
  attribute(column: AttributesColumn, key: string): string;
}

/** A table whose engine is not the expected one. */
export interface EngineDrift {
  readonly table: string;
  readonly engine: string;
  readonly expected: string;
}

/** A parameter of a query; it is bound by name as `{name:Type}`, never pasted into the text. */
export type QueryParameter = string | number | boolean | readonly string[];

export interface QueryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Limit of time, kept by the database too; seconds, 10 unless given. */
  readonly maxSeconds?: number | undefined;
}

export interface InsertOptions extends QueryOptions {
  /**
   * Names the batch. A batch of the same name that the table has taken before is not taken again, as far as the table
   * remembers (`non_replicated_deduplication_window`); so an insert whose answer got lost can be made again.
   */
  readonly token?: string | undefined;
}

/** The answer to a person's own query. 64-bit integers are strings. */
export interface QueryTable {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** There were more than the limit. */
  readonly truncated: boolean;
  readonly elapsedMs: number;
}

/** The database of logs, metrics and spans: a server, or the engine inside this process. */
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
   * @param limit the most rows to return
   * @throws HF_COLUMNAR_REFUSED it is no single reading statement, or reads what must not be read
   * @throws HF_COLUMNAR_UNREACHABLE, HF_COLUMNAR_QUERY, HF_COLUMNAR_TIMEOUT
   */
  ask(sql: string, limit: number, options?: QueryOptions): Promise<QueryTable>;
  /**
   * Inserts a batch, whole or not at all; when it resolves the rows are in the table.
   *
   * @param rows at most 50,000
   * @throws HF_COLUMNAR_SCHEMA (also: written rows are for a table that has become another), HF_COLUMNAR_FULL, and as
   *   `query` does. After any but HF_COLUMNAR_QUERY the insert may succeed when repeated
   */
  insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    options?: InsertOptions,
  ): Promise<void>;
  /**
   * Reads what a signal table is like, once; later calls give the same object until the connection is lost.
   *
   * @throws HF_COLUMNAR_SCHEMA there is no such table, and it could not be made
   * @throws HF_COLUMNAR_UNREACHABLE, HF_COLUMNAR_QUERY, HF_COLUMNAR_TIMEOUT
   */
  schema(table: SignalTable): Promise<TableSchema>;
  /** The tables whose engine is not the expected one (O10). @throws as `query` does */
  drift(options?: QueryOptions): Promise<readonly EngineDrift[]>;
}

/** Provided by the plugin that speaks to the database. */
export const ColumnarDatabaseToken: Token<ColumnarDatabase> = defineToken('columnar.database');
