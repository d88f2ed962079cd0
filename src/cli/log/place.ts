import { HostError } from '../../core/host/errors/host-error.ts';
import { type Place, placeOf, referenceTime, seqAt } from '../../core/host/history/place.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

/**
 * Reads a place as `placeOf` does.
 *
 * @param flag named when the text cannot be read
 * @param now epoch milliseconds
 * @throws HF_CLI_USAGE
 */
export function parsePlace(text: string, flag: string, now: number): Place {
  const place = placeOf(text, now);
  if (place) return place;
  const reason = `${flag} ${text} is neither a record's number nor a time such as 2026-01-31T03:05, 03:05 or 15m.`;
  throw new HostError('HF_CLI_USAGE', { reason, command: 'log list' });
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
  const seq = await seqAt(log, place);
  const first = log.firstSeq();
  if ('seq' in place || seq >= first) return seq;
  throw new KernelError('HF_LOG_RANGE', { seq: `as old as ${text}`, first, last: log.lastSeq() });
}
