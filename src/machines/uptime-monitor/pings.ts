/** What is kept of the pings of a monitor: their sums by hour and by day, so that averages survive a restart. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOURS_KEPT = 25;
const DAYS_KEPT = 31;

/** The longest period of which an average is known, milliseconds. */
export const LONGEST_PING_PERIOD_MS = 30 * DAY_MS;

/** The pings of one hour or day: when it began (epoch milliseconds), how many came, and their sum in milliseconds. */
export type PingSum = readonly [startedAt: number, count: number, sumMs: number];

export interface PingSums {
  /** Oldest first. */
  readonly hours: readonly PingSum[];
  readonly days: readonly PingSum[];
}

/** Adds one ping. @param at epoch milliseconds */
export function withPing(sums: PingSums | undefined, at: number, pingMs: number): PingSums {
  return {
    hours: added(sums?.hours ?? [], at, pingMs, HOUR_MS).slice(-HOURS_KEPT),
    days: added(sums?.days ?? [], at, pingMs, DAY_MS).slice(-DAYS_KEPT),
  };
}

function added(sums: readonly PingSum[], at: number, pingMs: number, stepMs: number): PingSum[] {
  const startedAt = at - (at % stepMs);
  const last = sums.at(-1);
  // After a clock was set back, pings count for the newest step.
  if (!last || last[0] < startedAt) return [...sums, [startedAt, 1, pingMs]];
  const [newest, count, sumMs] = last;
  return [...sums.slice(0, -1), [newest, count + 1, sumMs + pingMs]];
}

/** The sums by the clock as it is set now. @param byMs by how much it was set ahead, milliseconds */
export function movedPings({ hours, days }: PingSums, byMs: number): PingSums {
  const move = (sums: readonly PingSum[]) =>
    sums.map(([startedAt, count, sumMs]): PingSum => [startedAt + byMs, count, sumMs]);
  return { hours: move(hours), days: move(days) };
}

/**
 * The average ping of a period that ends now, in whole hours up to a day and in whole days beyond.
 *
 * @param periodMs at most `LONGEST_PING_PERIOD_MS`
 * @returns milliseconds; undefined when no ping came in it
 */
export function averagePing(sums: PingSums | undefined, now: number, periodMs: number): number | undefined {
  const [steps, stepMs] = periodMs <= DAY_MS ? [sums?.hours ?? [], HOUR_MS] : [sums?.days ?? [], DAY_MS];
  const within = steps.filter(([startedAt]) => startedAt + stepMs > now - periodMs);
  const count = within.reduce((total, [, each]) => total + each, 0);
  return count === 0 ? undefined : within.reduce((total, [, , sumMs]) => total + sumMs, 0) / count;
}
