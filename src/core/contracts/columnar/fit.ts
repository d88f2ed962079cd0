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
