/** How long a time is that a page shows, as a person chooses it, and the parts of it in which things are counted. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long each range is, and the part of it that is counted as one; milliseconds. */
export const RANGES = {
  '15 minutes': [15 * MINUTE, MINUTE / 4],
  '1 hour': [HOUR, MINUTE],
  '6 hours': [6 * HOUR, 5 * MINUTE],
  '1 day': [DAY, 20 * MINUTE],
  '7 days': [7 * DAY, 2 * HOUR],
  '30 days': [30 * DAY, 8 * HOUR],
} as const satisfies Readonly<Record<string, readonly [range: number, step: number]>>;
export const USUAL_RANGE = '1 hour';

/** Epoch milliseconds; `step` milliseconds. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** The range of that name before a time; the usual one where there is none. @param to epoch milliseconds */
export function rangeBefore(to: number, name: string | undefined): TimeRange {
  const known: Readonly<Record<string, readonly [range: number, step: number]>> = RANGES;
  const [length, step] = known[name ?? USUAL_RANGE] ?? RANGES[USUAL_RANGE];
  return { from: to - length, to, step };
}

/**
 * A value for each part of a range, 0 where there is none.
 *
 * @param counts by the beginning of the part, epoch milliseconds
 */
export function pointsOf(
  { from, to, step }: TimeRange,
  counts: ReadonlyMap<number, number>,
): (readonly [number, number])[] {
  const points: (readonly [number, number])[] = [];
  for (let at = Math.floor(from / step) * step; at <= to; at += step) points.push([at, counts.get(at) ?? 0]);
  return points;
}
