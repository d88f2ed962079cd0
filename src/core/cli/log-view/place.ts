import type { SqliteReader } from '../../log/sqlite-reader.ts';
import { firstSeqAt, parsePlace } from './instant.ts';

/**
 * The record that a place means: its number, or the newest record not after a time. In a log of some actors only, the
 * nearest one before.
 *
 * @throws HF_CLI_USAGE it is neither
 */
export async function seqOfPlace(log: SqliteReader, text: string, now = Date.now()): Promise<number> {
  const place = parsePlace(text, 'The place', now);
  return 'seq' in place ? place.seq : (await firstSeqAt(log, place.at + 1)) - 1;
}
