import { SIGNAL_COLUMNS } from '../../../core/contracts/columnar/columns.ts';
import type { SignalRow, TableSchema, WrittenRows } from '../../../core/contracts/columnar-database.ts';

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

/** The last moment that a `DateTime64(9)` can hold, and a `DateTime`. */
const LAST_NANOS = 9_223_372_036_854_775_807n;
const LAST_SECOND = 4_294_967_295n;
const BILLION = 1_000_000_000n;

type Convert = (value: unknown) => unknown;

/** How the values of a column are written. */
export interface Fit {
  /** Tells this way from others. */
  readonly mark: string;
  readonly write: Convert;
  /** What was written becomes again what a `SignalRow` has, as far as it still tells. */
  readonly read: Convert;
}

const NANOSECONDS: Fit = { mark: '9', write: nanoseconds, read: (text) => String(text).replace('.', '') };
const SECONDS: Fit = { mark: '0', write: seconds, read: (text) => `${text}000000000` };
const FINITE: Fit = { mark: 'f', write: finite, read: (value) => value };
const PREFIXED: Readonly<Record<string, Fit>> = {
  SpanKind: prefixed('SPAN_KIND_'),
  StatusCode: prefixed('STATUS_CODE_'),
};
const FITS = [NANOSECONDS, SECONDS, FINITE, listed(NANOSECONDS), listed(SECONDS), listed(FINITE)];

/**
 * @param type of the column in the database, e.g. `Array(DateTime64(9))`
 * @param isPrefixed whether names of kinds and codes are written as `SPAN_KIND_SERVER`
 * @returns undefined where a value may be written as it is
 */
export function fitOf(column: string, type: string, isPrefixed: boolean): Fit | undefined {
  const named = PREFIXED[column];
  if (named && isPrefixed) return named;
  const [, inner] = /^Array\((.*)\)$/.exec(type) ?? [];
  const fit = fitOfType(inner ?? type);
  return fit && inner !== undefined ? listed(fit) : fit;
}

/** @param mark of a fit of this column */
export function fitMarked(column: string, mark: string): Fit | undefined {
  const named = PREFIXED[column];
  return named?.mark === mark ? named : FITS.find((fit) => fit.mark === mark);
}

function fitOfType(type: string): Fit | undefined {
  const bare = type.replace(/^(?:Nullable|LowCardinality)\((.*)\)$/, '$1');
  if (bare.startsWith('DateTime64')) return NANOSECONDS;
  if (bare.startsWith('DateTime')) return SECONDS;
  return bare.startsWith('Float') ? FINITE : undefined;
}

function listed({ mark, write, read }: Fit): Fit {
  const each = (convert: Convert) => (values: unknown) =>
    Array.isArray(values) ? values.map(convert) : values;
  return { mark: `${mark}*`, write: each(write), read: each(read) };
}

function prefixed(prefix: string): Fit {
  return {
    mark: 'p',
    write: (name) => `${prefix}${String(name).toUpperCase()}`,
    read(name) {
      const bare = String(name).slice(prefix.length);
      return bare.slice(0, 1) + bare.slice(1).toLowerCase();
    },
  };
}

/** Nanoseconds since the epoch as the engine reads them: `1763700000.123456789`. */
function nanoseconds(value: unknown): string {
  const digits = String(value);
  // Nearly always: a moment of this century.
  if (digits.length === 19 && digits < '9223372036854775807')
    return `${digits.slice(0, 10)}.${digits.slice(10)}`;
  const nanos = integer(digits, LAST_NANOS);
  return `${padded(nanos / BILLION)}.${String(nanos % BILLION).padStart(9, '0')}`;
}

function seconds(value: unknown): string {
  const whole = integer(String(value), LAST_NANOS) / BILLION;
  return padded(whole > LAST_SECOND ? LAST_SECOND : whole);
}

/** With fewer digits the engine takes it for a year. */
function padded(second: bigint): string {
  return String(second).padStart(10, '0');
}

function integer(digits: string, last: bigint): bigint {
  if (!/^\d{1,24}$/.test(digits)) return 0n;
  const value = BigInt(digits);
  return value > last ? last : value;
}

function finite(value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}
