import { setImmediate } from 'node:timers/promises';
import type {
  ColumnarDatabase,
  EngineDrift,
  InsertOptions,
  QueryOptions,
  QueryParameter,
  QueryTable,
  SignalRow,
  SignalTable,
  TableSchema,
  WrittenRows,
} from '../../core/contracts/columnar-database.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { writerOf } from '../otlp/decode/row-writer.ts';
import type { Bounds, Engine } from './engine/engine.ts';
import { faultOf, type Work } from './engine-errors.ts';
import { encode } from './schema/rows.ts';
import { LiveSchema, type SchemaOptions, type SeenTable } from './schema.ts';
import { readingStatement } from './statement.ts';

/** One piece of work, when it is over. */
export interface Observed {
  readonly work: Work;
  readonly seconds: number;
  readonly rows: number;
  /** Undefined when it went well. */
  readonly fault?: HoldfastError;
}

export interface DatabaseParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly schema: SchemaOptions;
  readonly observe?: (observed: Observed) => void;
}

const DEFAULT_SECONDS = 10;
export const MOST_SECONDS = 300;
const MOST_ROWS = 50_000;
/** The engine ends its work by itself; when it says nothing for so long after, it is given up here. */
const GRACE_MS = 2_000;
/** Codes of the engine. */
const NO_SUCH_COLUMN = '16';
const UNKNOWN_TABLE = '60';
/** Lines of an answer that are parsed between two breaths of the event loop. */
const SLICE = 500;

/** Either engine as the rest of Holdfast knows it: bounded, checked, with coded errors. */
export class Database implements ColumnarDatabase {
  readonly #parts: DatabaseParts;
  readonly #schema: LiveSchema;

  constructor(parts: DatabaseParts) {
    this.#parts = parts;
    this.#schema = new LiveSchema(parts.schema, {
      query: (sql, parameters) => this.query(sql, parameters),
      command: (sql) => this.#work('query', {}, (bounds) => parts.engine.command(sql, bounds)),
    });
  }

  get kind(): 'embedded' | 'remote' {
    return this.#parts.engine.kind;
  }

  get place(): string {
    return this.#parts.engine.place;
  }

  async query<R extends object = Record<string, unknown>>(
    sql: string,
    parameters: Readonly<Record<string, QueryParameter>> = {},
    options: QueryOptions = {},
  ): Promise<readonly R[]> {
    return this.#work('query', options, async (bounds) => {
      const text = await this.#parts.engine.read(sql, parameters, bounds).catch((error) => {
        // Somebody has dropped a table since it was looked at.
        if (codeOf(error) === UNKNOWN_TABLE) this.forgetSchema();
        throw error;
      });
      const { columns, rows } = await parse(text, this.place);
      return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])) as R);
    });
  }

  async ask(sql: string, limit: number, options: QueryOptions = {}): Promise<QueryTable> {
    const { text, elapsedMs } = await this.askText(sql, limit, options);
    return tableOf(text, limit, elapsedMs, this.place);
  }

  /** As `ask`, for `tableOf` to read elsewhere. */
  async askText(sql: string, limit: number, options: QueryOptions = {}): Promise<AnswerText> {
    const statement = readingStatement(sql);
    const began = performance.now();
    const text = await this.#work('ask', options, (bounds) =>
      this.#parts.engine.ask(statement, limit + 1, bounds),
    );
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
    await this.#work('insert', options, (bounds) => this.#insert(table, rows, options.token, bounds), count);
  }

  schema(table: SignalTable): Promise<TableSchema> {
    return this.#schema.table(table);
  }

  drift(options?: QueryOptions): Promise<readonly EngineDrift[]> {
    return this.#schema.drift((sql, parameters) => this.query(sql, parameters, options));
  }

  /** The signal tables as they are, one line each, for people. @throws as `query` does */
  look(options?: QueryOptions): Promise<readonly SeenTable[]> {
    return this.#schema.look((sql, parameters) => this.query(sql, parameters, options));
  }

  /** Tables that serve, but could not be brought to the newest version or retention. */
  get notes(): readonly HoldfastError[] {
    return this.#schema.notes;
  }

  /** The next insert looks at the tables again: they may be others when a server comes back. */
  forgetSchema(): void {
    this.#schema.forget();
  }

  async #insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    token: string | undefined,
    bounds: Bounds,
  ): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const schema = await this.#schema.table(table);
      const { columns } = writerOf(schema);
      const body = 'bytes' in rows ? fitting(schema, rows) : await encode(schema, rows);
      try {
        return await this.#parts.engine.insert(
          { table: this.#schema.nameOf(table), columns, body, token },
          bounds,
        );
      } catch (error) {
        const code = codeOf(error);
        // Somebody has changed the table since it was looked at.
        if ((code !== NO_SUCH_COLUMN && code !== UNKNOWN_TABLE) || tries > 1) throw error;
        this.#schema.forget();
      }
    }
  }

  async #work<T>(
    work: Work,
    { maxSeconds = DEFAULT_SECONDS, signal }: QueryOptions,
    run: (bounds: Bounds) => Promise<T>,
    rows = 0,
  ): Promise<T> {
    const { engine, clock, observe } = this.#parts;
    const seconds = Math.min(Math.max(1, Math.ceil(maxSeconds)), MOST_SECONDS);
    const over = new AbortController();
    const cancel = clock.after(seconds * 1_000 + GRACE_MS, () =>
      over.abort(new HoldfastError('HF_COLUMNAR_TIMEOUT', { seconds })),
    );
    const giveUp = () => over.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    if (signal?.aborted) giveUp();
    const began = performance.now();
    const tell = (fault?: HoldfastError) =>
      observe?.({ work, rows, seconds: (performance.now() - began) / 1_000, ...(fault && { fault }) });
    try {
      const result = await run({ seconds, signal: over.signal });
      tell();
      return result;
    } catch (error) {
      // Whoever gave it up knows why.
      if (signal?.aborted) throw signal.reason;
      const fault = faultOf(over.signal.aborted ? over.signal.reason : error, work, engine.place, seconds);
      tell(fault);
      throw fault;
    } finally {
      cancel();
      signal?.removeEventListener('abort', giveUp);
    }
  }
}

/** @throws HF_COLUMNAR_SCHEMA */
function fitting(schema: TableSchema, { fit, bytes }: WrittenRows): Uint8Array {
  if (fit === writerOf(schema).fit) return bytes;
  const reason = 'its columns are others than those that rows were written for';
  throw new HoldfastError('HF_COLUMNAR_SCHEMA', { table: schema.table, reason });
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}

/** An engine's answer as it came. */
export interface AnswerText {
  readonly text: string;
  readonly elapsedMs: number;
  readonly place: string;
}

/** @throws HF_COLUMNAR_ANSWER */
export async function tableOf(
  text: string,
  limit: number,
  elapsedMs: number,
  place: string,
): Promise<QueryTable> {
  const { columns, rows } = await parse(text, place);
  return { columns, rows: rows.slice(0, limit), truncated: rows.length > limit, elapsedMs };
}

/** @throws HF_COLUMNAR_ANSWER */
async function parse(text: string, place: string): Promise<Pick<QueryTable, 'columns' | 'rows'>> {
  const lines = text.split('\n');
  // Each line ends with a break: what follows the last is a part of a line.
  const rest = lines.pop();
  const broken = (reason: string) => new HoldfastError('HF_COLUMNAR_ANSWER', { place, reason });
  if (rest !== '' || lines.length < 2) throw broken(text === '' ? 'it is empty' : 'it ends within a line');
  const parsed: unknown[][] = [];
  for (const [at, line] of lines.entries()) {
    if (at > 0 && at % SLICE === 0) await setImmediate();
    try {
      parsed.push(JSON.parse(line));
    } catch {
      throw broken(`line ${at + 1} is no JSON`);
    }
  }
  const [names = [], types = [], ...rows] = parsed;
  if (rows.some((row) => !Array.isArray(row) || row.length !== names.length))
    throw broken('a row is not whole');
  return { columns: names.map((name, at) => ({ name: String(name), type: String(types[at]) })), rows };
}
