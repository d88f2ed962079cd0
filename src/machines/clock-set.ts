/**
 * The wall clock was set while times are remembered. A machine that compares times handles this event, which every actor
 * gets whose machine names it: it moves them by as much, so that what it computes from them is the time that truly passed.
 * Times that name a date by somebody else's clock stay as they are: the end of a certificate, the expiry of a key.
 */
export type ClockSet = {
  readonly type: 'CLOCK_SET';
  /** By the clock as it is set now, epoch milliseconds. */
  readonly at: number;
  /** By how much it was set ahead, milliseconds; negative for back. */
  readonly byMs: number;
};

/** The names of the fields that may hold a time. */
type TimesOf<C> = {
  [K in keyof C]-?: NonNullable<C[K]> extends number ? K : never;
}[keyof C];

/**
 * The times of an object by the clock as it is set now. What is absent or 0 was never set, and stays.
 *
 * @param byMs by how much the clock was set ahead, milliseconds
 * @returns the fields that change
 */
export function moved<C extends object>(of: C, byMs: number, ...names: readonly TimesOf<C>[]): Partial<C> {
  const changed: Partial<C> = {};
  if (!Number.isFinite(byMs)) return changed; // an imported log may hold anything
  for (const name of names) {
    const at: unknown = of[name];
    if (typeof at === 'number' && at > 0) Object.assign(changed, { [name]: Math.max(1, at + byMs) });
  }
  return changed;
}

/** The same of a record of times by name. */
export function movedAll<T extends Readonly<Record<string, number | undefined>>>(times: T, byMs: number): T {
  return {
    ...times,
    ...moved<Readonly<Record<string, number | undefined>>>(times, byMs, ...Object.keys(times)),
  };
}
