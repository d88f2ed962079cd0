/** A decoded message, from JSON or protobuf, whose fields are not checked yet. */
export type Message = Readonly<Record<string, unknown>>;

/** The whole body cannot be understood; nothing of it is taken. */
export class BodyInvalid extends Error {}

/** One item is refused; the others of its request are taken. */
export class ItemRefused extends Error {
  constructor(reason: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0; // a body may hold a hundred thousand of them
    super(reason);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Longest name, unit, description, version or key, characters; what is longer is cut. */
const LONGEST_NAME = 4_096;
const UINT64_MAX = 2n ** 64n - 1n;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = '9223372036854775807';

/** @returns the field's value when the message sets it: protobufjs puts defaults on the prototype */
export function given(message: Message, field: string): unknown {
  const value = Object.hasOwn(message, field) ? message[field] : undefined;
  return value === null ? undefined : value;
}

/** @throws ItemRefused it is no list of messages */
export function messages(value: unknown, what: string, most = Number.POSITIVE_INFINITY): readonly Message[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new ItemRefused(`${what} is no list`);
  if (value.length > most) throw new ItemRefused(`it has more than ${most} ${what}`);
  for (const item of value) if (!isMessage(item)) throw new ItemRefused(`${what} holds what is no object`);
  return value as Message[];
}

/** @throws ItemRefused it is no message */
export function message(value: unknown, what: string): Message {
  if (value === undefined || value === null) return {};
  if (!isMessage(value)) throw new ItemRefused(`${what} is no object`);
  return value;
}

export function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws ItemRefused it is no string */
export function text(value: unknown, what: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new ItemRefused(`${what} is no string`);
  return wellFormed(value);
}

/** Like `text`, cut where it is longer than any name. */
export function name(value: unknown, what: string): string {
  const whole = text(value, what);
  return whole.length > LONGEST_NAME ? wellFormed(`${whole.slice(0, LONGEST_NAME)}…`) : whole;
}

/** A lone surrogate would be refused by the database, with the whole batch. */
export function wellFormed(value: string): string {
  return value.isWellFormed() ? value : value.toWellFormed();
}

/**
 * A trace's or span's id as lower-case hex digits.
 *
 * @param bytes 16 of a trace, 8 of a span
 * @returns empty when it is absent
 * @throws ItemRefused it has another length, other digits, or is all zeros
 */
export function id(value: unknown, bytes: 8 | 16, what: string): string {
  const hex = hexOf(value);
  if (hex === '') return '';
  if (hex === undefined || hex.length !== bytes * 2 || !/^[0-9a-f]+$/.test(hex)) {
    throw new ItemRefused(`${what} is not ${bytes * 2} hex digits`);
  }
  if (/^0+$/.test(hex)) throw new ItemRefused(`${what} is all zeros`);
  return hex;
}

function hexOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value.toLowerCase();
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  }
  // An absent field of bytes is an empty list on protobufjs' prototype.
  return Array.isArray(value) && value.length === 0 ? '' : undefined;
}

/** Bytes as base64, which is what JSON has. */
export function base64(value: unknown, what: string): string {
  if (typeof value === 'string') return wellFormed(value);
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  }
  throw new ItemRefused(`${what} is not base64`);
}

/**
 * A 64-bit integer as decimal digits, from a string, a number, or the two halves that protobufjs gives.
 *
 * @throws ItemRefused it is none, or needs more than 64 bits
 */
export function integer(value: unknown, what: string, signed = false): string {
  // The usual case, a time or a count, needs no conversion.
  if (typeof value === 'string' && isPlain(value)) return value;
  const whole = bigOf(value);
  if (
    whole === undefined ||
    whole < (signed ? INT64_MIN : 0n) ||
    whole > (signed ? -INT64_MIN - 1n : UINT64_MAX)
  ) {
    throw new ItemRefused(`${what} is no ${signed ? '' : 'unsigned '}64-bit integer`);
  }
  return whole.toString();
}

function isPlain(digits: string): boolean {
  return (
    (digits.length < INT64_MAX.length || (digits.length === INT64_MAX.length && digits <= INT64_MAX)) &&
    /^[1-9]\d*$/.test(digits)
  );
}

function bigOf(value: unknown): bigint | undefined {
  if (value === undefined || value === null) return 0n;
  if (typeof value === 'string') return /^-?\d{1,20}$/.test(value) ? BigInt(value) : undefined;
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined;
  if (!isLong(value)) return undefined;
  const bits = (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
  return value.unsigned ? bits : BigInt.asIntN(64, bits);
}

interface Long {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
}

function isLong(value: unknown): value is Long {
  return typeof value === 'object' && value !== null && 'low' in value && 'high' in value;
}

/** A count, a flag word, a scale: an integer of at most 32 bits. @throws ItemRefused it is none */
export function small(value: unknown, what: string): number {
  if (value === undefined || value === null) return 0;
  const number = typeof value === 'string' && /^-?\d{1,10}$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < -(2 ** 31) || number >= 2 ** 32) {
    throw new ItemRefused(`${what} is no 32-bit integer`);
  }
  return number;
}

/** @returns a number, or `nan`, `inf`, `-inf`, as the database reads them. @throws ItemRefused it is neither */
export function double(value: unknown, what: string): number | string {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (value === 'NaN') return 'nan';
  if (typeof number !== 'number' || (Number.isNaN(number) && typeof value === 'string')) {
    throw new ItemRefused(`${what} is no number`);
  }
  if (Number.isFinite(number)) return number;
  return Number.isNaN(number) ? 'nan' : number > 0 ? 'inf' : '-inf';
}

/** @throws ItemRefused it is no boolean */
export function flag(value: unknown, what: string): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw new ItemRefused(`${what} is no boolean`);
  return value;
}

/**
 * The number of an enum. Its name is taken, too, though only protobuf's own JSON writes names.
 *
 * @param names by number
 * @param prefix of the names, e.g. `SPAN_KIND_`
 * @returns 0 for a number that is none of them: one of a version to come
 */
export function choice(value: unknown, names: readonly string[], prefix: string, what: string): number {
  if (typeof value === 'string') {
    const named = names.findIndex((one) => `${prefix}${one.toUpperCase()}` === value);
    if (named >= 0) return named;
  }
  const number = small(value, what);
  return number in names ? number : 0;
}

/** 2262-04-11, the last instant that nanoseconds in a signed 64-bit integer can express. */
const LAST_NANOS = 2n ** 63n - 1n;
const NANOS_PER_MS = 1_000_000n;
const DAY_NANOS = 86_400_000n * NANOS_PER_MS;
const DAY_MS = 86_400_000;
/** A clock may be wrong; further ahead a row would outlive its retention and look fresh for ever. */
const AHEAD_MS = DAY_MS;

/** An instant of a row: decimal nanoseconds since the epoch, and the day that partitions go by. */
export interface Instant {
  readonly nanos: string;
  readonly day: number;
}

/**
 * The time of a row itself.
 *
 * @param nowMs the receiver's clock
 * @throws ItemRefused it is absent, no time, or more than a day ahead
 */
export function rowTime(value: unknown, nowMs: number, what: string): Instant {
  const nanos = nanosOf(value, what);
  if (nanos === 0n) throw new ItemRefused(`${what} is missing`);
  if (nanos > BigInt(nowMs + AHEAD_MS) * NANOS_PER_MS) {
    throw new ItemRefused(`${what} is more than a day ahead of the receiver's clock`);
  }
  return { nanos: nanos.toString(), day: Number(nanos / DAY_NANOS) };
}

/** A time that nothing is sorted by; absent is the epoch. */
export function anyTime(value: unknown, what: string): string {
  return nanosOf(value, what).toString();
}

/** From a clock of milliseconds. */
export function instantOf(ms: number): Instant {
  return { nanos: (BigInt(ms) * NANOS_PER_MS).toString(), day: Math.floor(ms / DAY_MS) };
}

/** Nanoseconds from one to the other; 0 when the second is earlier. */
export function between(start: string, end: string): string {
  const duration = BigInt(end) - BigInt(start);
  return duration > 0n ? duration.toString() : '0';
}

/** @returns whether a time is given at all */
export function hasTime(value: unknown): boolean {
  return value !== undefined && value !== null && integer(value, 'a time') !== '0';
}

function nanosOf(value: unknown, what: string): bigint {
  const nanos = BigInt(integer(value, what));
  if (nanos > LAST_NANOS) throw new ItemRefused(`${what} is after the year 2262`);
  return nanos;
}
