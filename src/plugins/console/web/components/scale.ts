/** Numbers for the lines of an axis: few, round, and with the values between them. */

/**
 * @param low @param high the ends of the axis
 * @param most how many lines there may be
 * @returns round numbers within the axis, rising
 */
export function ticksOf(low: number, high: number, most: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return Number.isFinite(low) ? [low] : [];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  return multiples(step, low, high);
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Steps of clocks and calendars, milliseconds. */
const STEPS = [
  ...[1, 2, 5, 10, 50, 100, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28].map((n) => n * DAY),
];

/**
 * The same for times, at full minutes, hours and days of the viewer's zone.
 *
 * @param from @param to epoch milliseconds
 */
export function timeTicksOf(from: number, to: number, most: number): number[] {
  const raw = (to - from) / Math.max(1, most);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const step = STEPS.find((one) => one >= raw) ?? Math.ceil(raw / (28 * DAY)) * 28 * DAY;
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  return multiples(step, from - zone, to - zone).map((time) => time + zone);
}

function multiples(step: number, low: number, high: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.min(200, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length: Math.max(0, count) }, (_, index) => (first + index) * step);
}
