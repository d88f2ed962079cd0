import { ItemRefused, integer } from './values.ts';

/** 2262-04-11, the last instant that nanoseconds in a signed 64-bit integer can tell. */
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
