import type { SignalRow, TableSchema, WrittenRows } from '../columnar-database.ts';
import { SIGNAL_COLUMNS } from './columns.ts';
import { type Fit, fitMarked, fitOf } from './fit.ts';

/** Columns of whoever sent a row: all items of a scope have them in common. They are written first. */
const ORIGIN: ReadonlySet<string> = new Set([
  'ServiceName',
  'ResourceAttributes',
  'ResourceSchemaUrl',
  'ScopeName',
  'ScopeVersion',
  'ScopeAttributes',
  'ScopeDroppedAttrCount',
  'ScopeSchemaUrl',
]);

interface Column {
  readonly name: string;
  readonly fit: Fit | undefined;
}

const writers = new WeakMap<TableSchema, RowWriter>();

/** @returns the writer for a table as it is; the same for the same schema */
export function writerOf(schema: TableSchema): RowWriter {
  let writer = writers.get(schema);
  if (!writer) {
    writer = new RowWriter(schema);
    writers.set(schema, writer);
  }
  return writer;
}

/**
 * Writes rows as a table takes them: lines of `JSONCompactEachRow`. Whatever a producer sent must not spoil the batch of
 * another: times that no column can hold become the last that it can, numbers that are none are written as such, broken
 * characters replaced.
 */
export class RowWriter {
  /** Of a line's values: those of our own schema that the table has. */
  readonly columns: readonly string[];
  /** Two writers of one fit write the same. */
  readonly fit: string;
  readonly #origin: readonly Column[];
  readonly #own: readonly Column[];

  constructor({ table, columns, enumNames }: TableSchema) {
    const there = SIGNAL_COLUMNS[table].flatMap(([name]) => {
      const type = columns.get(name);
      return type === undefined ? [] : [{ name, fit: fitOf(name, type, enumNames === 'prefixed') }];
    });
    this.#origin = there.filter(({ name }) => ORIGIN.has(name));
    this.#own = there.filter(({ name }) => !ORIGIN.has(name));
    const all = [...this.#origin, ...this.#own];
    this.columns = all.map(({ name }) => name);
    this.fit = all.map(({ name, fit }) => (fit ? `${name}:${fit.mark}` : name)).join(',');
  }

  /** The beginning of all lines of one scope. */
  origin(row: SignalRow): string {
    if (this.#origin.length === 0) return '[';
    return `${text(this.#origin, row).slice(0, -1)}${this.#own.length > 0 ? ',' : ''}`;
  }

  /** @param origin as `origin` gave it @param own the other columns */
  line(origin: string, own: SignalRow): string {
    return origin + text(this.#own, own).slice(1);
  }
}

/**
 * Rows that were written, to be written again for a table that has become another.
 *
 * @param written of any writer; with an empty fit, of a release that wrote rows as objects
 */
export function rowsOf({ fit, bytes }: Pick<WrittenRows, 'fit' | 'bytes'>): SignalRow[] {
  const columns = fit.split(',').map((part): Column => {
    const [name = '', mark] = part.split(':');
    return { name, fit: mark === undefined ? undefined : fitMarked(name, mark) };
  });
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().split('\n');
  return lines.filter(Boolean).map((line) => {
    const values = JSON.parse(line);
    if (!Array.isArray(values)) return values;
    const fields = columns.flatMap(({ name, fit: own }, at) => {
      const value = values[at];
      return value === null || value === undefined ? [] : [[name, own ? own.read(value) : value]];
    });
    return Object.fromEntries(fields);
  });
}

function text(columns: readonly Column[], row: SignalRow): string {
  const values: unknown[] = new Array(columns.length);
  for (let at = 0; at < columns.length; at += 1) {
    const { name, fit } = columns[at] as Column;
    const value = row[name];
    // Null stands for the column's default.
    values[at] = value === undefined ? null : fit ? fit.write(value) : value;
  }
  const json = JSON.stringify(values);
  return LONE_SURROGATE.test(json) ? JSON.stringify(values, wellFormed) : json;
}

/** `JSON.stringify` writes half a character as an escape, which the engine refuses. */
const LONE_SURROGATE = /\\ud[89a-f]/;

function wellFormed(_name: string, value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.toWellFormed(), item]));
}
