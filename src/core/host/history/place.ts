import type { HistoryReader, LogReader } from '../../kernel/log/event-log.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import { parseDuration } from '../duration.ts';

const DAY_MS = 86_400_000;

/** A place in the log: a record's number, or a time (epoch milliseconds). */
export type Place = { readonly seq: number } | { readonly at: number };

/**
 * Reads a place as people write it: `120` is a record; `2026-01-31T03:05`, `03:05` (the last time it was) and `15m`
 * (ago) are times. Times are UTC, as they are shown, unless they say otherwise.
 *
 * @param now epoch milliseconds
 * @returns undefined for what is neither
 */
export function placeOf(text: string, now: number): Place | undefined {
  if (/^\d{1,15}$/.test(text)) return { seq: Number(text) };
  const ago = parseDuration(text);
  if (ago !== undefined) return { at: now - ago };
  if (/^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text)) {
    const today = Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${text}Z`);
    if (!Number.isNaN(today)) return { at: today > now ? today - DAY_MS : today };
  }
  const zoned = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text) ? `${text}Z` : text;
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(zoned.replace(' ', 'T')) : Number.NaN;
  return Number.isNaN(at) ? undefined : { at };
}

/**
 * The first record at or after a time, by binary search: `at` never goes back along the log.
 *
 * @param at epoch milliseconds
 * @returns its seq; one past the newest when all are older
 */
export async function firstSeqAt(reader: LogReader, at: number): Promise<number> {
  const oldest = await firstOf(reader, 1);
  let low = oldest?.seq ?? 1;
  let high = reader.lastSeq() + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const record = await firstOf(reader, middle);
    if (record === undefined || record.at >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}

async function firstOf(reader: LogReader, from: number): Promise<LogRecord | undefined> {
  for await (const record of reader.read({ from, limit: 1 })) return record;
  return undefined;
}

/**
 * The time that `03:05` and `15m` are counted back from: now, or the end of a log that ended more than a day ago. Epoch
 * milliseconds.
 */
export function referenceTime(log: Pick<HistoryReader, 'lastSeq' | 'record'>, now = Date.now()): number {
  const last = log.lastSeq();
  const end = last === 0 ? now : log.record(last).at;
  return now - end > DAY_MS ? end : now;
}

/**
 * The number of the newest record that is not after a place. In a log that holds only some actors it is the nearest record
 * before.
 *
 * @returns one before the first record when the log begins after that time
 */
export async function seqAt(log: LogReader, place: Place): Promise<number> {
  return 'seq' in place ? place.seq : (await firstSeqAt(log, place.at + 1)) - 1;
}
