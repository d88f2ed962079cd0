import { parseDuration } from '../../core/host/duration.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { LogReader } from '../../core/kernel/log/event-log.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

const DAY_MS = 86_400_000;

/** A place in the log: a record's number, or a time (epoch milliseconds). */
export type Place = { readonly seq: number } | { readonly at: number };

/**
 * Parses a place as people write it: `120` is a record; `2026-01-31T03:05`, `03:05` (the last time it was) and `15m`
 * (ago) are times. Times are UTC, as they are shown, unless they say otherwise.
 *
 * @param flag named when the text cannot be read
 * @param now epoch milliseconds
 * @throws HF_CLI_USAGE
 */
export function parsePlace(text: string, flag: string, now: number): Place {
  if (/^\d{1,15}$/.test(text)) return { seq: Number(text) };
  const ago = parseDuration(text);
  if (ago !== undefined) return { at: now - ago };
  if (/^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(text)) {
    const today = Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${text}Z`);
    if (!Number.isNaN(today)) return { at: today > now ? today - DAY_MS : today };
  }
  const zoned = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text) ? `${text}Z` : text;
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(zoned.replace(' ', 'T')) : Number.NaN;
  if (!Number.isNaN(at)) return { at };
  const reason = `${flag} ${text} is neither a record's number nor a time such as 2026-01-31T03:05, 03:05 or 15m.`;
  throw new HostError('HF_CLI_USAGE', { reason, command: 'log list' });
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
export function referenceTime(log: Pick<SqliteReader, 'lastSeq' | 'record'>, now = Date.now()): number {
  const last = log.lastSeq();
  const end = last === 0 ? now : log.record(last).at;
  return now - end > DAY_MS ? end : now;
}

/**
 * The number of the record at a place: the given number, or the newest record not after the given time. In a log that holds
 * only some actors it is the nearest record before.
 *
 * @throws HF_CLI_USAGE it is neither
 * @throws HF_LOG_RANGE the log begins after that time
 */
export async function seqOfPlace(log: SqliteReader, text: string, now = referenceTime(log)): Promise<number> {
  const place = parsePlace(text, 'The place', now);
  if ('seq' in place) return place.seq;
  const seq = (await firstSeqAt(log, place.at + 1)) - 1;
  const first = log.firstSeq();
  if (seq >= first) return seq;
  throw new KernelError('HF_LOG_RANGE', { seq: `as old as ${text}`, first, last: log.lastSeq() });
}
