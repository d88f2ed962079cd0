import { setImmediate } from 'node:timers/promises';
import type { SignalRow, TableSchema } from '../../../core/adapters/columnar-database.ts';
import { TABLES } from './tables.ts';

/** So many rows are written as text between two breaths of the event loop: about two milliseconds. */
const SLICE = 250;

/** The last moment that a `DateTime64(9)` can hold, and a `DateTime`. */
const LAST_NANOS = 9_223_372_036_854_775_807n;
const LAST_SECOND = 4_294_967_295n;
const BILLION = 1_000_000_000n;

type Fit = (value: unknown) => unknown;

/** A batch as lines of `JSONCompactEachRow`, for the columns that the table has. */
export interface Encoded {
  readonly columns: readonly string[];
  readonly body: Buffer;
}

/**
 * Writes rows as the table takes them. Whatever a producer sent must not spoil the batch of another: times that no
 * column can hold become the last that it can, numbers that are none are written as such, broken characters replaced.
 */
export async function encode(schema: TableSchema, rows: readonly SignalRow[]): Promise<Encoded> {
  const columns = TABLES[schema.table].columns
    .map(([name]) => name)
    .filter((name) => schema.columns.has(name));
  const fits = columns.map((name) => fitOf(name, schema));
  const parts: Buffer[] = [];
  for (let from = 0; from < rows.length; from += SLICE) {
    if (from > 0) await setImmediate();
    const lines = rows.slice(from, from + SLICE).map((row) => line(columns, fits, row));
    parts.push(Buffer.from(`${lines.join('\n')}\n`));
  }
  return { columns, body: Buffer.concat(parts) };
}

function line(columns: readonly string[], fits: readonly (Fit | undefined)[], row: SignalRow): string {
  const values: unknown[] = new Array(columns.length);
  for (let at = 0; at < columns.length; at += 1) {
    const value = row[columns[at] as string];
    const convert = fits[at];
    // Null stands for the column's default.
    values[at] = value === undefined ? null : convert ? convert(value) : value;
  }
  const text = JSON.stringify(values);
  return LONE_SURROGATE.test(text) ? JSON.stringify(values, wellFormed) : text;
}

/** `JSON.stringify` writes half a character as an escape, which the engine refuses. */
const LONE_SURROGATE = /\\ud[89a-f]/;

function wellFormed(_name: string, value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.toWellFormed(), item]));
}

/** @returns undefined where a value may be written as it is */
function fitOf(name: string, { columns, enumNames }: TableSchema): Fit | undefined {
  const type = columns.get(name) ?? '';
  const [, inner] = /^Array\((.*)\)$/.exec(type) ?? [];
  const fit = fitOfType(inner ?? type);
  if (enumNames === 'prefixed' && name === 'SpanKind')
    return (kind) => `SPAN_KIND_${String(kind).toUpperCase()}`;
  if (enumNames === 'prefixed' && name === 'StatusCode')
    return (code) => `STATUS_CODE_${String(code).toUpperCase()}`;
  if (!fit || inner === undefined) return fit;
  return (values) => (Array.isArray(values) ? values.map(fit) : values);
}

function fitOfType(type: string): Fit | undefined {
  const bare = type.replace(/^(?:Nullable|LowCardinality)\((.*)\)$/, '$1');
  if (bare.startsWith('DateTime64')) return (value) => nanoseconds(value);
  if (bare.startsWith('DateTime')) return (value) => seconds(value);
  if (bare.startsWith('Float')) return finite;
  return undefined;
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
