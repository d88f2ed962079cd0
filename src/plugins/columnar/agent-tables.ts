import { z } from 'zod';
import { Mutex } from '../../core/host/concurrency.ts';
import { parseAnswer } from './answer.ts';
import type { Engine } from './engine/engine.ts';
import { ColumnarError } from './errors.ts';

/** The database of agents' own tables: nothing of the signals is in it, and nothing else can be written by an agent. */
export const AGENT_DATABASE = 'agents';

const SECONDS = 25;
const MOST_TABLES = 100;
const MOST_COLUMNS = 200;
const MOST_ROWS = 10_000;

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,62}$/, 'small letters, digits and underscores')
  .describe('Small letters, digits and underscores');
const SCALAR =
  'String|Bool|UUID|Date|DateTime|DateTime64\\([0-9]\\)|U?Int(?:8|16|32|64)|Float(?:32|64)|IPv4|IPv6';
const TYPE = new RegExp(
  `^(?:(?:${SCALAR})|LowCardinality\\(String\\)|(?:Nullable|Array)\\((?:${SCALAR})\\)|Map\\(String, (?:${SCALAR})\\))$`,
);
const type = z
  .string()
  .max(64)
  .regex(TYPE, 'a type such as String, Int64, DateTime64(3), Nullable(Float64), Array(String)');
const column = z.strictObject({ name, type });

/** What the tools of `columnar_rw` take. Names and types are on lists, and nothing of it is SQL. */
export const agentRequests = {
  create: z.strictObject({
    table: name,
    columns: z.array(column).min(1).max(MOST_COLUMNS),
    orderBy: z.array(name).min(1).max(10).describe('Columns by which rows are sorted and found fast'),
    keepDays: z.int().min(1).max(3_650).optional().describe('Rows are dropped after so many days'),
  }),
  addColumn: z.strictObject({ table: name, column }),
  insert: z.strictObject({
    table: name,
    rows: z.array(z.record(name, z.json())).min(1).max(MOST_ROWS),
  }),
  read: z.strictObject({
    table: name,
    limit: z.int().min(1).max(1_000).default(100),
    offset: z.int().min(0).max(1_000_000).default(0),
  }),
  drop: z.strictObject({ table: name }),
} as const;

type Request<K extends keyof typeof agentRequests> = z.output<(typeof agentRequests)[K]>;

/** Tables that agents make and fill. Each change has happened when its promise is fulfilled. */
export class AgentTables {
  readonly #engine: Engine;
  /** Changes of tables run one after another, so that what they count is still so when they are made. */
  readonly #changes = new Mutex();
  #made: Promise<void> | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async list(signal: AbortSignal): Promise<{ readonly tables: readonly object[] }> {
    const sql = `SELECT t.name AS table, t.total_rows AS rows, t.total_bytes AS bytes,
        groupArray(concat(c.name, ' ', c.type)) AS columns
      FROM system.tables AS t LEFT JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
      WHERE t.database = '${AGENT_DATABASE}' GROUP BY table, rows, bytes ORDER BY table`;
    return { tables: await this.#rows(sql, signal) };
  }

  /** @throws HF_COLUMNAR_AGENT_TABLE there are too many, or the order names no column; what the engine refuses */
  async create(
    { table, columns, orderBy, keepDays }: Request<'create'>,
    signal: AbortSignal,
  ): Promise<object> {
    const names = columns.map((one) => one.name);
    const stranger = orderBy.find((one) => !names.includes(one));
    if (stranger !== undefined) throw refused(table, `orderBy names ${stranger}, which is no column`);
    const dated = keepDays === undefined ? [] : ['_stored_at DateTime DEFAULT now()'];
    const ttl = keepDays === undefined ? '' : ` TTL _stored_at + INTERVAL ${keepDays} DAY`;
    const fields = [...columns.map((one) => `\`${one.name}\` ${one.type}`), ...dated].join(', ');
    const order = orderBy.map((one) => `\`${one}\``).join(', ');
    const sql = `CREATE TABLE ${placeOf(table)} (${fields}) ENGINE = MergeTree ORDER BY (${order})${ttl}`;
    await this.#changes.run(async () => {
      signal.throwIfAborted();
      await this.#database(signal);
      const known = await this.#count('tables', `database = '${AGENT_DATABASE}'`, signal);
      if (known >= MOST_TABLES) throw refused(table, `there are ${MOST_TABLES} tables already`);
      await this.#command(sql, table, signal);
    });
    return { created: table };
  }

  /** @throws HF_COLUMNAR_AGENT_TABLE it has too many columns; what the engine refuses */
  async addColumn({ table, column: added }: Request<'addColumn'>, signal: AbortSignal): Promise<object> {
    const sql = `ALTER TABLE ${placeOf(table)} ADD COLUMN \`${added.name}\` ${added.type}`;
    await this.#changes.run(async () => {
      signal.throwIfAborted();
      const ofTable = `database = '${AGENT_DATABASE}' AND table = '${table}'`;
      if ((await this.#count('columns', ofTable, signal)) >= MOST_COLUMNS)
        throw refused(table, `it has ${MOST_COLUMNS} columns already`);
      await this.#command(sql, table, signal);
    });
    return { table, added: added.name };
  }

  async insert({ table, rows }: Request<'insert'>, signal: AbortSignal): Promise<object> {
    const body = Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    await this.#tried(table, () =>
      this.#engine.insert({ table: `${AGENT_DATABASE}.${table}`, body }, { seconds: SECONDS, signal }),
    );
    return { table, inserted: rows.length };
  }

  async read({ table, limit, offset }: Request<'read'>, signal: AbortSignal): Promise<object> {
    const sql = `SELECT * FROM ${placeOf(table)} ORDER BY ALL LIMIT ${limit + 1} OFFSET ${offset}`;
    const rows = await this.#tried(table, () => this.#rows(sql, signal));
    const more = rows.length > limit;
    return { rows: rows.slice(0, limit), ...(more && { nextOffset: offset + limit }) };
  }

  async drop({ table }: Request<'drop'>, signal: AbortSignal): Promise<object> {
    await this.#command(`DROP TABLE ${placeOf(table)} SYNC`, table, signal);
    return { dropped: table };
  }

  #database(signal: AbortSignal): Promise<void> {
    this.#made ??= this.#engine
      .command(`CREATE DATABASE IF NOT EXISTS ${AGENT_DATABASE}`, { seconds: SECONDS, signal })
      .catch((error) => {
        this.#made = undefined;
        throw refused(AGENT_DATABASE, reasonOf(error));
      });
    return this.#made;
  }

  /** @param what a table of `system`, with a row for each */
  async #count(what: 'tables' | 'columns', where: string, signal: AbortSignal): Promise<number> {
    const [row] = await this.#rows(`SELECT count() AS known FROM system.${what} WHERE ${where}`, signal);
    return z.object({ known: z.coerce.number() }).parse(row).known;
  }

  #command(sql: string, table: string, signal: AbortSignal): Promise<void> {
    return this.#tried(table, () => this.#engine.command(sql, { seconds: SECONDS, signal }));
  }

  async #rows(sql: string, signal: AbortSignal): Promise<readonly object[]> {
    const text = await this.#engine.read(sql, {}, { seconds: SECONDS, signal });
    const { columns, rows } = await parseAnswer(text, this.#engine.place);
    return rows.map((row) => Object.fromEntries(columns.map((one, at) => [one.name, row[at]])));
  }

  async #tried<T>(table: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw refused(table, reasonOf(error));
    }
  }
}

const placeOf = (table: string): string => `${AGENT_DATABASE}.\`${table}\``;

const refused = (table: string, reason: string): Error =>
  new ColumnarError('HF_COLUMNAR_AGENT_TABLE', { table, reason: reason.replace(/\.$/, '') });

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0]?.slice(0, 500) ?? '';
}
