/**
 * The age of backups and of drills, whose dates other clocks may have written. A date in the future proves nothing: it would
 * hide for as long that nothing newer is made any more.
 */

/** Clocks may differ by so much, milliseconds. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** Whether a date is in the future by more than clocks differ. Both are epoch milliseconds. */
export function isAhead(at: number, now: number): boolean {
  return at > now + CLOCK_TOLERANCE_MS;
}

/** Whether something happened within the last so many milliseconds, and not in the future. */
export function isRecent(at: number, now: number, withinMs: number): boolean {
  return !isAhead(at, now) && now - at <= withinMs;
}

export interface BackupAges {
  /** The good ones, newest first; `at` is epoch milliseconds. */
  readonly good: readonly { readonly at: number }[];
  /** Since when backups are expected (epoch ms). */
  readonly since?: number | undefined;
  /** The longest time without a good one, milliseconds. */
  readonly staleMs: number;
}

/** Whether there was no good backup for too long. */
export function isStale({ good, since, staleMs }: BackupAges, now: number): boolean {
  const newest = good.find(({ at }) => !isAhead(at, now));
  return now - (newest?.at ?? Math.min(since ?? now, now)) > staleMs;
}
