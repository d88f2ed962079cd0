import type { QueryParameter } from '../../../core/contracts/columnar-database.ts';
import { ColumnarError } from '../errors.ts';

/** How long a query or insert may take; then, and when the signal is aborted, the engine ends it. */
export interface Bounds {
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** Every answer comes in this format: a line of names, a line of types, a line a row. */
export const ANSWER_FORMAT = 'JSONCompactEachRowWithNamesAndTypes';

/** The most that a person's own query may use. */
const READ_MEMORY_BYTES = 1_000_000_000;
const READ_RESULT_BYTES = 8 * 1024 * 1024;

/** Rows as they go into a table. */
export interface Batch {
  /** With its database. */
  readonly table: string;
  /** The columns of each line's values. Without them each line is an object (`JSONEachRow`), and names that the table lacks are left out. */
  readonly columns?: readonly string[] | undefined;
  /** Lines in `JSONCompactEachRow` or `JSONEachRow`; not changed until the insert is over. */
  readonly body: Uint8Array;
  /** A table does not insert a second batch of the same name. */
  readonly token?: string | undefined;
}

/** How a person's own query reads. */
export interface Reading {
  /** About how many rows are computed; the answer may have more. */
  readonly rows: number;
  /** Tables of which only a part is read, each with the condition for its rows. */
  readonly filters?: Readonly<Record<string, string>> | undefined;
  /** Times in the answer are ISO 8601 in UTC, in place of the clock of the engine's zone. */
  readonly isoTimes?: boolean | undefined;
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
  /** Runs a statement where nothing can be changed. */
  ask(sql: string, reading: Reading, bounds: Bounds): Promise<string>;
  /**
   * The syntax tree of one statement, which is not run.
   *
   * @returns text in `ANSWER_FORMAT`, a row for each line of `EXPLAIN AST`
   */
  syntaxTree(sql: string, bounds: Bounds): Promise<string>;
  insert(batch: Batch, bounds: Bounds): Promise<void>;
  /** The next call makes a new connection, with credentials and authorities as they are then. */
  reconnect(): void;
  /** Ends the queries and inserts that are under way. */
  close(): Promise<void>;
}

/** Settings of our own queries and inserts, in either engine. */
export const OWN_SETTINGS = {
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 1,
  // Telemetry comes late and out of order: a batch of a busy hour touches many days.
  max_partitions_per_insert_block: '1000',
} as const;

/** Settings of an insert of objects: times are ISO 8601, and names that the table lacks are left out. */
export const OBJECT_SETTINGS = {
  date_time_input_format: 'best_effort',
  input_format_skip_unknown_fields: 1,
} as const;

/** Settings of a statement that a person typed; `readonly` comes last, because no setting can be changed after it. */
export function readOnlySettings(reading: Reading | undefined, seconds: number) {
  const { rows, filters, isoTimes } = reading ?? {};
  return {
    ...OWN_SETTINGS,
    max_execution_time: seconds,
    max_memory_usage: READ_MEMORY_BYTES,
    max_result_bytes: READ_RESULT_BYTES,
    // What does not fit into memory is sorted and grouped on the disk.
    max_temporary_data_on_disk_size_for_query: String(READ_MEMORY_BYTES),
    ...(rows !== undefined && { limit: rows }),
    ...(filters && { additional_table_filters: mapText(filters) }),
    ...(isoTimes && { date_time_output_format: 'iso' }),
    allow_ddl: 0,
    readonly: 1,
  } as const;
}

/** A map as the engine writes it. */
function mapText(map: Readonly<Record<string, string>>): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  return `{${Object.entries(map)
    .map(([name, value]) => `${quoted(name)}: ${quoted(value)}`)
    .join(', ')}}`;
}

/** A fixed number of sessions, each used by one caller at a time, with a bounded queue of callers that wait. */
export class Pool<T> {
  readonly #free: T[];
  readonly #waiting: ((session: T) => void)[] = [];
  readonly #most: number;
  #taken = 0;

  /** @param most how many may wait */
  constructor(sessions: readonly T[], most: number) {
    this.#free = [...sessions];
    this.#most = most;
  }

  /** How many are taken, and how many wait. */
  get load(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#taken, waiting: this.#waiting.length };
  }

  /**
   * @param signal ends the wait; an acquired session is held until `release`
   * @throws HF_COLUMNAR_BUSY too many wait; the signal's reason
   */
  async acquire(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const session = this.#free.pop();
    if (session !== undefined) {
      this.#taken += 1;
      return session;
    }
    if (this.#waiting.length >= this.#most)
      throw new ColumnarError('HF_COLUMNAR_BUSY', { reason: `${this.#most} queries wait already` });
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(grant), 1);
        reject(signal.reason);
      };
      const grant = (next: T) => {
        signal.removeEventListener('abort', giveUp);
        resolve(next);
      };
      this.#waiting.push(grant);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  release(session: T): void {
    const next = this.#waiting.shift();
    if (next) {
      next(session);
      return;
    }
    this.#taken -= 1;
    this.#free.push(session);
  }
}
