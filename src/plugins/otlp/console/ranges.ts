/** How long a range is, and the part of it that is counted as one; milliseconds. */
export const RANGES: Readonly<Record<string, readonly [range: number, step: number]>> = {
  '1 hour': [3_600_000, 60_000],
  '6 hours': [21_600_000, 300_000],
  '1 day': [86_400_000, 1_200_000],
  '7 days': [604_800_000, 7_200_000],
};
export const USUAL_RANGE = '1 hour';
