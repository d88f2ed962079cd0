import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { firstSeqAt, parsePlace } from './instant.ts';

const DAY_MS = 86_400_000;

/**
 * What `03:05` and `15m` are counted back from: now; in a log that ended more than a day ago, its end. Epoch milliseconds.
 */
export function referenceTime(log: Pick<SqliteReader, 'lastSeq' | 'record'>, now = Date.now()): number {
  const last = log.lastSeq();
  const end = last === 0 ? now : log.record(last).at;
  return now - end > DAY_MS ? end : now;
}

/**
 * The record that a place means: its number, or the newest record not after a time. In a log of some actors only, the
 * nearest one before.
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
  throw new HoldfastError('HF_LOG_RANGE', { seq: `as old as ${text}`, first, last: log.lastSeq() });
}
