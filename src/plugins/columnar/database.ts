import { setImmediate } from 'node:timers/promises';
import type {
  ColumnarDatabase,
  EngineDrift,
  InsertOptions,
  QueryOptions,
  QueryParameter,
  QueryTable,
  SignalRow,
  TableSchema,
  WrittenRows,
} from '../../core/contracts/columnar-database.ts';
import { SIGNAL_TABLES, type SignalTable } from '../../core/contracts/columnar-tables.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { type AnswerText, parseAnswer, tableOf } from './answer.ts';
import type { Batch, Bounds, Engine } from './engine/engine.ts';
import { engineCode, faultOf, type Work } from './engine-errors.ts';
import { ColumnarError } from './errors.ts';
import { asOf } from './reading/as-of.ts';
import { type ReadingAccess, readingStatement } from './reading/statement.ts';
import { LiveSchema, type SchemaOptions, type SeenTable } from './schema.ts';
import { TABLES } from './tables.ts';

/** One query or insert, when it is over. */
export interface Observed {
  readonly work: Work;
  readonly seconds: number;
  readonly rows: number;
  /** Undefined when it went well. */
  readonly fault?: HoldfastError;
}

export interface DatabaseDependencies {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly schema: SchemaOptions;
  readonly observe?: (observed: Observed) => void;
}

/** How a person's own query is answered. */
export interface AskOptions extends QueryOptions {
  /** The query sees what the signal tables had until then, and this time is its `now()`; epoch milliseconds. */
  readonly until?: number | undefined;
  /** Times are ISO 8601 in UTC. */
  readonly isoTimes?: boolean | undefined;
}

const DEFAULT_SECONDS = 10;
export const MOST_SECONDS = 300;
const MOST_ROWS = 50_000;
/** The engine ends a query by itself; if it does not answer within this time after that, the call fails here. */
const GRACE_MS = 2_000;
/** Rows that are written as text before the event loop runs again: about two milliseconds. */
const SLICE = 250;

/** A `ColumnarDatabase` over either engine: it bounds times and batches, and its errors are coded. */
export class Database implements ColumnarDatabase {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #observe: (observed: Observed) => void;
  readonly #options: SchemaOptions;
  readonly #schema: LiveSchema;

  constructor({ engine, clock, schema, observe = () => {} }: DatabaseDependencies) {
    this.#engine = engine;
    this.#clock = clock;
    this.#observe = observe;
    this.#options = schema;
    this.#schema = new LiveSchema(schema, {
      query: (sql, parameters) => this.query(sql, parameters),
      command: (sql) => this.#bounded('query', {}, (bounds) => engine.command(sql, bounds)),
    });
  }

  get kind(): 'embedded' | 'remote' {
    return this.#engine.kind;
  }

  get place(): string {
    return this.#engine.place;
  }

  /** The database that holds the signal tables. */
  get databaseName(): string {
    return this.#options.database;
  }

  /** How many replicas each table is configured to have. */
  get expectedReplicas(): number {
    return this.#options.replicas;
  }

  async query<R extends object = Record<string, unknown>>(
    sql: string,
    parameters: Readonly<Record<string, QueryParameter>> = {},
    options: QueryOptions = {},
  ): Promise<readonly R[]> {
    return this.#bounded('query', options, async (bounds) => {
      const text = await this.#engine.read(sql, parameters, bounds).catch((error) => {
        // A table was dropped after its schema was read.
        if (engineCode(error) === 'UNKNOWN_TABLE') this.forgetSchema();
        throw error;
      });
      const { columns, rows } = await parseAnswer(text, this.place);
      return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])) as R);
    });
  }

  async ask(sql: string, limit: number, options: QueryOptions = {}): Promise<QueryTable> {
    return tableOf(await this.askText(sql, limit, options), limit);
  }

  /** Like `ask`, but returns the text, which `tableOf` can parse in another process. */
  async askText(
    sql: string,
    limit: number,
    { until, isoTimes, ...options }: AskOptions = {},
  ): Promise<AnswerText> {
    const began = performance.now();
    const filters = until === undefined ? undefined : this.#filtersUntil(until);
    const text = await this.#bounded('ask', options, async (bounds) => {
      const asked = until === undefined ? sql : asOf(sql, until);
      const statement = await readingStatement(asked, this.#readingAccess(bounds));
      return this.#engine.ask(statement, { rows: limit + 1, filters, isoTimes }, bounds);
    });
    return { text, elapsedMs: performance.now() - began, place: this.place };
  }

  async insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    options: InsertOptions = {},
  ): Promise<void> {
    const count = 'bytes' in rows ? rows.rows : rows.length;
    if (count === 0) return;
    if (count > MOST_ROWS) throw new RangeError(`a batch of ${count} rows is larger than ${MOST_ROWS}`);
    const batch = { table: this.#schema.nameOf(table), token: options.token };
    await this.#bounded('insert', options, (bounds) => this.#insert(table, rows, batch, bounds), count);
  }

  schema(table: SignalTable): Promise<TableSchema> {
    return this.#schema.table(table);
  }

  drift(options?: QueryOptions): Promise<readonly EngineDrift[]> {
    return this.#schema.drift((sql, parameters) => this.query(sql, parameters, options));
  }

  /** The signal tables, for people. @throws as `query` does */
  tables(options?: QueryOptions): Promise<readonly SeenTable[]> {
    return this.#schema.seen((sql, parameters) => this.query(sql, parameters, options));
  }

  /** Why tables of ours could not be brought to the newest version or retention; they are used as they are. */
  get notes(): readonly HoldfastError[] {
    return this.#schema.notes;
  }

  /** The next call reads the tables' schema again: when a server comes back, it may be another one. */
  forgetSchema(): void {
    this.#schema.forget();
  }

  /** Nothing of a signal table that is later than a time. */
  #filtersUntil(until: number): Record<string, string> {
    return Object.fromEntries(
      SIGNAL_TABLES.map((table) => [
        this.#schema.nameOf(table),
        `${TABLES[table].time} <= fromUnixTimestamp64Milli(toInt64(${Math.round(until)}))`,
      ]),
    );
  }

  #readingAccess(bounds: Bounds): ReadingAccess {
    const { database } = this.#options;
    const rowsOf = async (sql: string) =>
      (await parseAnswer(await this.#engine.read(sql, {}, bounds), this.place)).rows;
    return {
      database,
      canonical: async (sql) => {
        const quoted = sql.replace(/[\\']/g, '\\$&');
        const [[text] = []] = await rowsOf(`SELECT formatQuerySingleLine('${quoted}')`).catch(asIfTyped);
        return String(text);
      },
      tree: async (sql) => {
        const { rows } = await parseAnswer(await this.#engine.syntaxTree(sql, bounds), this.place);
        return rows.map(([line]) => String(line));
      },
      engines: async () => {
        const rows = await rowsOf(`SELECT name, engine FROM system.tables WHERE database = '${database}'`);
        return new Map(rows.map(([name, engine]) => [String(name), String(engine)]));
      },
    };
  }

  async #insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    batch: Pick<Batch, 'table' | 'token'>,
    bounds: Bounds,
    isRetry = false,
  ): Promise<void> {
    const schema = await this.#schema.table(table);
    if ('bytes' in rows && rows.schema !== schema) throw changed(table);
    const body = 'bytes' in rows ? rows.bytes : await asLines(rows);
    try {
      const columns = 'bytes' in rows ? rows.columns : undefined;
      await this.#engine.insert({ ...batch, body, columns }, bounds);
    } catch (error) {
      const code = engineCode(error);
      if (code !== 'UNKNOWN_TABLE' && code !== 'NO_SUCH_COLUMN') throw error;
      this.forgetSchema();
      if ('bytes' in rows || isRetry) throw changed(table, error);
      await this.#insert(table, rows, batch, bounds, true);
    }
  }

  /** The engine ends a query by itself and says so; a server that does not report even that counts as not answering. */
  #silence(seconds: number): HoldfastError {
    if (this.kind === 'embedded') return new ColumnarError('HF_COLUMNAR_TIMEOUT', { seconds });
    const reason = `no answer within ${seconds} s`;
    return new ColumnarError('HF_COLUMNAR_UNREACHABLE', { place: this.place, reason });
  }

  async #bounded<T>(
    work: Work,
    { maxSeconds = DEFAULT_SECONDS, signal }: QueryOptions,
    run: (bounds: Bounds) => Promise<T>,
    rows = 0,
  ): Promise<T> {
    const seconds = Math.min(Math.max(1, Math.ceil(maxSeconds)), MOST_SECONDS);
    const over = new AbortController();
    const cancel = this.#clock.after(seconds * 1_000 + GRACE_MS, () => over.abort(this.#silence(seconds)));
    const bounds = { seconds, signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal };
    const began = performance.now();
    const observe = (fault?: HoldfastError) =>
      this.#observe({ work, rows, seconds: (performance.now() - began) / 1_000, ...(fault && { fault }) });
    try {
      const result = await run(bounds);
      observe();
      return result;
    } catch (error) {
      // The caller's signal was aborted, with a reason of its own.
      if (signal?.aborted) throw signal.reason;
      const cause = over.signal.aborted ? over.signal.reason : error;
      const fault = faultOf(cause, work, this.place, seconds);
      observe(fault);
      throw fault;
    } finally {
      cancel();
    }
  }
}

/** A syntax error comes from the statement as it was typed, not from what asked for its canonical text. */
function asIfTyped(error: unknown): never {
  if (error instanceof Error)
    error.message = error.message.replace(/: In scope SELECT formatQuery[\s\S]*$/, '');
  throw error;
}

/** The table was changed after its schema was read. */
function changed(table: SignalTable, cause?: unknown): HoldfastError {
  const reason = 'it was changed since its schema was read';
  return new ColumnarError('HF_COLUMNAR_SCHEMA', { table, reason }, { cause });
}

/** @returns lines of `JSONEachRow` */
async function asLines(rows: readonly SignalRow[]): Promise<Buffer> {
  const slices: Buffer[] = [];
  for (let from = 0; from < rows.length; from += SLICE) {
    if (from > 0) await setImmediate();
    slices.push(
      Buffer.from(
        rows
          .slice(from, from + SLICE)
          .map(asLine)
          .join(''),
      ),
    );
  }
  return Buffer.concat(slices);
}

function asLine(row: SignalRow): string {
  const json = JSON.stringify(row);
  // `JSON.stringify` writes a lone surrogate as an escape, which the engine refuses.
  return `${/\\ud[89a-f]/.test(json) ? JSON.stringify(row, wellFormed) : json}\n`;
}

function wellFormed(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}
