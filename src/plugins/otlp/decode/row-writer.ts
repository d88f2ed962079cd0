/**
 * Writes rows as lines of `JSONCompactEachRow`, for the table as it really is: columns that it lacks are left out, times
 * get the precision of their column, names of kinds their prefix. The lines go into the database unchanged, so the main
 * thread never touches a row.
 *
 * A fast path in place of the client's own insert of objects (`JSONEachRow`). Its row in docs/performance.md is `otlp`,
 * "JSON, 1,000 spans a request": 45,498 spans a second by this path, received and decoded, and 18,435 where the client
 * inserts the same decoded rows as objects.
 */

import type { TableShape } from '../../../core/contracts/columnar-database.ts';
import { SIGNAL_COLUMNS, type SignalTable } from '../../../core/contracts/columnar-tables.ts';

/** A row by the names of `SIGNAL_COLUMNS`: times are decimal nanoseconds since the epoch, maps are plain objects of strings. */
export type RowValues = Readonly<Record<string, unknown>>;

/** Columns that all rows of one scope have in common. They are written first, and once for all of them. */
const SCOPE_COLUMNS: ReadonlySet<string> = new Set([
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
  readonly encoding: Encoding | undefined;
}

/** What one producer sent must not spoil the batch of another: `line` writes any values so that the engine accepts them. */
export class RowWriter {
  /** Names of a line's values, in their order. */
  readonly columns: readonly string[];
  /** Names and encodings of the columns as text, for `readRows`. Writers of the same layout write the same lines. */
  readonly layout: string;
  readonly #ofScope: readonly Column[];
  readonly #ofItem: readonly Column[];

  constructor({ table, columns, enumNames }: TableShape) {
    const present = SIGNAL_COLUMNS[table].flatMap(([name]) => {
      const type = columns.get(name);
      return type === undefined ? [] : [{ name, encoding: encodingOf(name, type, enumNames === 'prefixed') }];
    });
    this.#ofScope = present.filter(({ name }) => SCOPE_COLUMNS.has(name));
    this.#ofItem = present.filter(({ name }) => !SCOPE_COLUMNS.has(name));
    const all = [...this.#ofScope, ...this.#ofItem];
    this.columns = all.map(({ name }) => name);
    this.layout = all.map(({ name, encoding }) => (encoding ? `${name}:${encoding.id}` : name)).join(',');
  }

  /** @returns the beginning of the lines of all rows of one scope */
  scope(row: RowValues): string {
    if (this.#ofScope.length === 0) return '[';
    return `${written(this.#ofScope, row).slice(0, -1)}${this.#ofItem.length > 0 ? ',' : ''}`;
  }

  /**
   * @param scope as `scope` returned it
   * @param row the columns that are not of the scope
   */
  line(scope: string, row: RowValues): string {
    return scope + written(this.#ofItem, row).slice(1);
  }
}

const writers = new WeakMap<TableShape, RowWriter>();

/** @returns the writer for a table; the same for the same object */
export function writerOf(shape: TableShape): RowWriter {
  let writer = writers.get(shape);
  if (!writer) {
    writer = new RowWriter(shape);
    writers.set(shape, writer);
  }
  return writer;
}

const defaultShapes = new Map<SignalTable, TableShape>();

/** @returns the table as Holdfast makes it, which is assumed until the database has said what it is like */
export function defaultShape(table: SignalTable): TableShape {
  let shape = defaultShapes.get(table);
  if (!shape) {
    shape = { table, columns: new Map(SIGNAL_COLUMNS[table]), enumNames: 'short' };
    defaultShapes.set(table, shape);
  }
  return shape;
}

/** Reads lines back, so that they can be written again for a table that has changed. @param layout of their writer */
export function readRows(layout: string, lines: Uint8Array): RowValues[] {
  const columns = layout.split(',').map((part): Column => {
    const [name = '', id] = part.split(':');
    return { name, encoding: id === undefined ? undefined : encodingById(name, id) };
  });
  const text = Buffer.from(lines.buffer, lines.byteOffset, lines.length).toString();
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const values: readonly unknown[] = JSON.parse(line);
      const fields = columns.flatMap(({ name, encoding }, at) => {
        const value = values[at];
        return value === null || value === undefined ? [] : [[name, encoding ? encoding.read(value) : value]];
      });
      return Object.fromEntries(fields);
    });
}

function written(columns: readonly Column[], row: RowValues): string {
  const values = columns.map(({ name, encoding }) => {
    const value = row[name];
    if (value === undefined) return null; // stands for the column's default
    return encoding ? encoding.write(value) : value;
  });
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

/** How the values of a column are written when not as they are. */
interface Encoding {
  /** Names it in a layout. */
  readonly id: string;
  readonly write: (value: unknown) => unknown;
  /** Undoes `write`, as far as precision was kept. */
  readonly read: (value: unknown) => unknown;
}

const NANOSECONDS: Encoding = {
  id: '9',
  write: nanoseconds,
  read: (text) => String(text).replace('.', ''),
};
const SECONDS: Encoding = { id: '0', write: seconds, read: (text) => `${text}000000000` };
const FLOAT: Encoding = { id: 'f', write: float, read: (value) => value };
const PREFIXED: Readonly<Record<string, Encoding>> = {
  SpanKind: prefixed('SPAN_KIND_'),
  StatusCode: prefixed('STATUS_CODE_'),
};
const ENCODINGS = [NANOSECONDS, SECONDS, FLOAT, ofEach(NANOSECONDS), ofEach(SECONDS), ofEach(FLOAT)];

/**
 * @param type of the column in the database, e.g. `Array(DateTime64(9))`
 * @param isPrefixed whether names of kinds and codes are written as `SPAN_KIND_SERVER`
 * @returns undefined where a value is written as it is
 */
function encodingOf(column: string, type: string, isPrefixed: boolean): Encoding | undefined {
  const named = PREFIXED[column];
  if (named && isPrefixed) return named;
  const [, item] = /^Array\((.*)\)$/.exec(type) ?? [];
  const bare = (item ?? type).replace(/^(?:Nullable|LowCardinality)\((.*)\)$/, '$1');
  const encoding = bare.startsWith('DateTime64')
    ? NANOSECONDS
    : bare.startsWith('DateTime')
      ? SECONDS
      : bare.startsWith('Float')
        ? FLOAT
        : undefined;
  return encoding && item !== undefined ? ofEach(encoding) : encoding;
}

function encodingById(column: string, id: string): Encoding | undefined {
  const named = PREFIXED[column];
  return named?.id === id ? named : ENCODINGS.find((encoding) => encoding.id === id);
}

function ofEach({ id, write, read }: Encoding): Encoding {
  const each = (convert: Encoding['write']) => (values: unknown) =>
    Array.isArray(values) ? values.map(convert) : values;
  return { id: `${id}*`, write: each(write), read: each(read) };
}

function prefixed(prefix: string): Encoding {
  return {
    id: 'p',
    write: (name) => `${prefix}${String(name).toUpperCase()}`,
    read(name) {
      const bare = String(name).slice(prefix.length);
      return bare.slice(0, 1) + bare.slice(1).toLowerCase();
    },
  };
}

/** The last moments that a `DateTime64(9)` and a `DateTime` can hold: a later one is written as the last. */
const LAST_NANOSECOND = 9_223_372_036_854_775_807n;
const LAST_NANOSECOND_DIGITS = String(LAST_NANOSECOND);
const LAST_SECOND = 4_294_967_295n;
const BILLION = 1_000_000_000n;

/** Nanoseconds since the epoch as the engine reads them: `1763700000.123456789`. */
function nanoseconds(value: unknown): string {
  const digits = String(value);
  // Any moment from 2001 on, without big integers.
  if (digits.length === 19 && digits < LAST_NANOSECOND_DIGITS)
    return `${digits.slice(0, 10)}.${digits.slice(10)}`;
  const nanos = instant(digits);
  return `${tenDigits(nanos / BILLION)}.${String(nanos % BILLION).padStart(9, '0')}`;
}

function seconds(value: unknown): string {
  const whole = instant(String(value)) / BILLION;
  return tenDigits(whole > LAST_SECOND ? LAST_SECOND : whole);
}

/** With fewer digits the engine would read a year. */
function tenDigits(second: bigint): string {
  return String(second).padStart(10, '0');
}

function instant(digits: string): bigint {
  if (!/^\d{1,24}$/.test(digits)) return 0n;
  const value = BigInt(digits);
  return value > LAST_NANOSECOND ? LAST_NANOSECOND : value;
}

/** JSON has no such numbers; the engine reads these names. */
function float(value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}
