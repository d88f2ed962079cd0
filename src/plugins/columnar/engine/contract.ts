import type { QueryParameter } from '../../../core/contracts/columnar-database.ts';

/** How long a piece of work may take; the engine itself gives it up then, and when the signal is aborted. */
export interface Bounds {
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** Every answer comes in this format: a line of names, a line of types, a line a row. */
export const ANSWER_FORMAT = 'JSONCompactEachRowWithNamesAndTypes';

/** A person's own query may use so much of the machine. */
const LANE_MEMORY_BYTES = 1_000_000_000;
const LANE_RESULT_BYTES = 8 * 1024 * 1024;

/** Rows as they go into a table. */
export interface Batch {
  /** With its database. */
  readonly table: string;
  readonly columns: readonly string[];
  /** Lines in `JSONCompactEachRow`; it is not changed until the insert is over. */
  readonly body: Uint8Array;
  /** A batch of this name that the table has taken is not taken again. */
  readonly token?: string | undefined;
}

/** What Holdfast needs of an engine; `Database` makes a `ColumnarDatabase` of it. Its errors are raw. */
export interface Engine {
  readonly kind: 'embedded' | 'remote';
  /** For people, without credentials. */
  readonly place: string;
  /** @returns text in `ANSWER_FORMAT` */
  read(sql: string, parameters: Readonly<Record<string, QueryParameter>>, bounds: Bounds): Promise<string>;
  /** Changes the schema. */
  command(sql: string, bounds: Bounds): Promise<void>;
  /**
   * Runs a statement that a person typed where nothing can be changed.
   *
   * @param rows about so many are computed; there may come more
   */
  ask(sql: string, rows: number, bounds: Bounds): Promise<string>;
  insert(batch: Batch, bounds: Bounds): Promise<void>;
  /** The next call makes a new connection, with credentials and authorities as they are then. */
  reconnect(): void;
  /** Gives up what is under way. */
  close(): Promise<void>;
}

/** What holds for our own queries and inserts, in either engine. */
export const OWN_SETTINGS = {
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 1,
  // Telemetry comes late and out of order: a batch of a busy hour touches many days.
  max_partitions_per_insert_block: '1000',
} as const;

/** What holds for a statement that a person typed; `readonly` comes last, for it ends all changing of settings. */
export function laneSettings(rows: number, seconds: number) {
  return {
    ...OWN_SETTINGS,
    max_execution_time: seconds,
    max_memory_usage: LANE_MEMORY_BYTES,
    max_result_bytes: LANE_RESULT_BYTES,
    limit: rows,
    allow_ddl: 0,
    readonly: 1,
  } as const;
}
