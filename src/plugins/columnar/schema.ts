import type { EngineDrift, TableSchema } from '../../core/contracts/columnar-database.ts';
import { SIGNAL_TABLES, type SignalTable } from '../../core/contracts/columnar-tables.ts';
import { HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { ColumnarError } from './errors.ts';
import { commentOf, createStatement, ourComment, SCHEMA_VERSION, ttl } from './tables.ts';

export interface SchemaOptions {
  /** A plain word; the embedded engine has `telemetry` alone. */
  readonly database: string;
  readonly retentionDays: number;
  /** How many replicas the server has: with more than one, tables are expected to be replicated, and are not made here. */
  readonly replicas: number;
  /** Tables are made so that an acknowledged insert is on the disk; a server has its own setting for that. */
  readonly isDurable?: boolean;
}

type Query = (
  sql: string,
  parameters: Readonly<Record<string, string>>,
) => Promise<readonly Record<string, unknown>[]>;

/** What the schema needs of the database. */
export interface SchemaAccess {
  readonly query: Query;
  command(sql: string): Promise<void>;
}

/** A signal table, for people. */
export interface SeenTable {
  readonly table: SignalTable;
  readonly made: 'here' | 'elsewhere' | 'missing';
  readonly engine?: string;
  readonly rows: number;
  readonly bytes: number;
  /** Parts that the engine found damaged and set aside: their rows are missing. */
  readonly damaged: number;
}

const FAMILY = /^(?:Replicated|Shared)?(?:\w*)MergeTree$/;

/**
 * Reads the present signal tables. Missing ones are created, tables of Holdfast are brought to the newest version and
 * retention, and tables of others (ClickStack, the collector's exporter) are used unchanged.
 */
export class LiveSchema {
  readonly #options: SchemaOptions;
  readonly #access: SchemaAccess;
  #tablesByName: Promise<ReadonlyMap<SignalTable, TableSchema | HoldfastError>> | undefined;

  #notes: HoldfastError[] = [];

  constructor(options: SchemaOptions, access: SchemaAccess) {
    this.#options = options;
    this.#access = access;
  }

  /** With its database; both are plain words. */
  nameOf(table: SignalTable): string {
    return `${this.#options.database}.${table}`;
  }

  /** @throws HF_COLUMNAR_SCHEMA, and what the database throws */
  async table(table: SignalTable): Promise<TableSchema> {
    this.#tablesByName ??= this.#readTables().catch((error) => {
      this.#tablesByName = undefined;
      throw error;
    });
    const found = (await this.#tablesByName).get(table);
    if (found && !(found instanceof HoldfastError)) return found;
    // Somebody may create the table later.
    this.forget();
    throw found ?? new ColumnarError('HF_COLUMNAR_SCHEMA', { table, reason: 'there is no such table' });
  }

  /** Tables of Holdfast that could not be brought to the newest version or retention; they are used unchanged. */
  get notes(): readonly HoldfastError[] {
    return this.#notes;
  }

  /** The next call reads the tables again. */
  forget(): void {
    this.#tablesByName = undefined;
  }

  /** @throws what the query throws */
  async drift(query: Query): Promise<readonly EngineDrift[]> {
    const { database, replicas } = this.#options;
    const expected = replicas > 1 ? 'ReplicatedMergeTree' : 'MergeTree';
    const rows = await query(
      `SELECT name, engine FROM system.tables WHERE database = {database:String} AND NOT is_temporary
       AND (engine LIKE '%MergeTree' OR name IN (${SIGNAL_TABLES.map((table) => `'${table}'`).join(', ')})) ORDER BY name`,
      { database },
    );
    return rows
      .map(({ name, engine }) => ({ table: String(name), engine: String(engine), expected }))
      .filter(({ engine }) => !FAMILY.test(engine) || (replicas > 1 && !/^(Replicated|Shared)/.test(engine)));
  }

  /** @throws what the query throws */
  async seen(query: Query): Promise<readonly SeenTable[]> {
    const { database } = this.#options;
    const rows = await query(
      `SELECT name, engine, comment, total_rows AS rows, total_bytes AS bytes FROM system.tables
       WHERE database = {database:String} AND startsWith(name, 'otel_') ORDER BY name`,
      { database },
    );
    const aside = await query(
      `SELECT table, count() AS parts FROM system.detached_parts WHERE database = {database:String} AND reason LIKE 'broken%'
       AND startsWith(table, 'otel_') GROUP BY table`,
      { database },
    );
    const damaged = new Map(aside.map(({ table, parts }) => [String(table), Number(parts)]));
    const seen = new Map(rows.map((row) => [String(row.name), row]));
    return SIGNAL_TABLES.map((table) => {
      const row = seen.get(table);
      if (!row) return { table, made: 'missing', rows: 0, bytes: 0, damaged: 0 };
      return {
        table,
        made: ourComment(String(row.comment)) ? 'here' : 'elsewhere',
        engine: String(row.engine),
        rows: Number(row.rows),
        bytes: Number(row.bytes),
        damaged: damaged.get(table) ?? 0,
      };
    });
  }

  async #readTables(): Promise<ReadonlyMap<SignalTable, TableSchema | HoldfastError>> {
    const faults = await this.#migrate();
    const { database } = this.#options;
    const tables = await this.#tables();
    const columns = await this.#access.query(
      `SELECT table, name, type FROM system.columns WHERE database = {database:String}
       AND startsWith(table, 'otel_') AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') ORDER BY position`,
      { database },
    );
    const schemas = new Map<SignalTable, TableSchema | HoldfastError>(faults);
    for (const table of SIGNAL_TABLES) {
      const found = tables.get(table);
      if (!found) continue;
      const own = columns.filter((column) => column.table === table);
      const types = new Map(own.map(({ name, type }) => [String(name), String(type)]));
      schemas.set(table, {
        table,
        engine: found.engine,
        isOurs: ourComment(found.comment) !== undefined,
        columns: types,
        enumNames: table === 'otel_traces' ? await this.#enumNames() : 'short',
        attribute: (column, key) => attribute(types.get(column), column, key),
      });
    }
    return schemas;
  }

  /** Each step may be repeated, by this process or by another one at the same time. */
  async #migrate(): Promise<Map<SignalTable, HoldfastError>> {
    const { retentionDays, replicas } = this.#options;
    const faults = new Map<SignalTable, HoldfastError>();
    this.#notes = [];
    const before = await this.#tables();
    for (const table of SIGNAL_TABLES) {
      const found = before.get(table);
      const ours = found && ourComment(found.comment);
      if (found && !ours) continue;
      if (ours && ours.version > SCHEMA_VERSION) continue; // a newer Holdfast made it
      if (ours?.version === SCHEMA_VERSION && ours.days === retentionDays) continue;
      try {
        if (found) await this.#renew(table);
        else await this.#create(table, replicas);
      } catch (error) {
        if (!isCoded(error, 'HF_COLUMNAR_QUERY') && !isCoded(error, 'HF_COLUMNAR_SCHEMA')) throw error;
        const reason = String(error.details.reason);
        const fault = new ColumnarError('HF_COLUMNAR_SCHEMA', { table, reason }, { cause: error });
        if (found) this.#notes.push(fault);
        else faults.set(table, fault);
      }
    }
    return faults;
  }

  /** The comment is changed last, because it states that the rest is done. */
  async #renew(table: SignalTable): Promise<void> {
    const { retentionDays } = this.#options;
    await this.#access.command(`ALTER TABLE ${this.nameOf(table)} MODIFY TTL ${ttl(table, retentionDays)}`);
    await this.#access.command(
      `ALTER TABLE ${this.nameOf(table)} MODIFY COMMENT '${commentOf(retentionDays)}'`,
    );
  }

  async #create(table: SignalTable, replicas: number): Promise<void> {
    if (replicas > 1) {
      const reason = `it is not there, and replicated tables must be made by the operator of the ${replicas} replicas`;
      throw new ColumnarError('HF_COLUMNAR_SCHEMA', { table, reason });
    }
    const { retentionDays, isDurable = false } = this.#options;
    await this.#access.command(createStatement(table, this.nameOf(table), retentionDays, isDurable));
  }

  async #tables(): Promise<Map<string, { readonly engine: string; readonly comment: string }>> {
    const rows = await this.#access.query(
      "SELECT name, engine, comment FROM system.tables WHERE database = {database:String} AND startsWith(name, 'otel_')",
      { database: this.#options.database },
    );
    return new Map(
      rows.map(({ name, engine, comment }) => [
        String(name),
        { engine: String(engine), comment: String(comment) },
      ]),
    );
  }

  async #enumNames(): Promise<TableSchema['enumNames']> {
    const [row] = await this.#access.query(
      `SELECT SpanKind AS kind FROM ${this.nameOf('otel_traces')} WHERE SpanKind != '' LIMIT 1`,
      {},
    );
    return String(row?.kind ?? '').startsWith('SPAN_KIND_') ? 'prefixed' : 'short';
  }
}

/** Attributes are maps, or in some schemas of ClickStack and of the exporter of type JSON, where a dotted name is a path. */
function attribute(type: string | undefined, column: string, key: string): string {
  return /^(?:JSON\b|Object\()/.test(type ?? '')
    ? `ifNull(toString(getSubcolumn(${column}, ${key})), '')`
    : `${column}[${key}]`;
}
