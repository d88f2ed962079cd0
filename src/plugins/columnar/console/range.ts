import type { PageMoment } from '../../../core/contracts/console.ts';
import { rangeBefore, type TimeRange } from '../../../core/host/history/time-ranges.ts';
import { ColumnarError } from '../errors.ts';

/** @throws HF_COLUMNAR_FILTER `until` is no time */
export function rangeOf({ inputs, time }: Pick<PageMoment, 'inputs' | 'time'>): TimeRange {
  return rangeBefore(Math.min(time, untilOf(inputs.until) ?? time), inputs.range);
}

/** A time without a zone is UTC. */
function untilOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const hasTime = /\d[T ]\d/.test(text);
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text);
  const ms = Date.parse(hasTime && !hasZone ? `${text.trim()}Z` : text);
  if (Number.isFinite(ms)) return ms;
  throw new ColumnarError('HF_COLUMNAR_FILTER', {
    name: 'until',
    reason: 'a time is written as 2026-11-23T09:30, in UTC, or with its zone',
  });
}

/** SQL of the beginning of the part of a range that a time lies in, in seconds. @param column of the time */
export function stepSql(column: string, { step }: TimeRange): string {
  const seconds = step / 1_000;
  return `intDiv(toUnixTimestamp(${column}), ${seconds}) * ${seconds}`;
}

/** What the parameters `from` and `to` are compared with. @param column of a time, whatever its precision */
export function millis(column: string): string {
  return `toUnixTimestamp64Milli(toDateTime64(${column}, 3))`;
}
