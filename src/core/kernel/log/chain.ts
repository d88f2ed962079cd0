import { KernelError } from '../errors/kernel-error.ts';
import { CHAIN_START } from './chain-hash.ts';
import type { HistoryReader } from './event-log.ts';
import { type LogRecord, parseRecord } from './record.ts';

/**
 * Records in order, each checked against the one before. Start at the first record, at the oldest that is kept, or
 * behind one whose hash is trusted.
 *
 * @param gaps `known` goes on behind records that a repair signed as missing; a state must not be folded over them
 * @throws HF_LOG_CORRUPT naming the first record that is missing or not what was written
 */
export function* readChained(
  reader: HistoryReader,
  from: number,
  to = Number.MAX_SAFE_INTEGER,
  gaps: 'refused' | 'known' = 'refused',
): Iterable<LogRecord> {
  let previous = from <= 1 ? CHAIN_START : reader.hashBefore(from);
  let expected = from;
  for (const page of reader.pages({ from, to })) {
    for (const raw of page) {
      if (raw.seq !== expected) {
        const isKnown = reader.isMissing(expected, raw.seq - 1);
        if (!reader.partial && !(isKnown && gaps === 'known')) {
          const reason = isKnown
            ? 'a repair could not save it, and no state was saved after it'
            : 'it is missing';
          throw new KernelError('HF_LOG_CORRUPT', { seq: expected, reason });
        }
        previous = reader.hashBefore(raw.seq);
      }
      if (previous !== undefined && !reader.isChained(raw, previous)) {
        throw new KernelError('HF_LOG_CORRUPT', {
          seq: raw.seq,
          reason: 'its hash does not fit what stands before it',
        });
      }
      const record = parseRecord(raw.seq, raw.body);
      if (record.seq !== raw.seq || record.actor !== raw.actor || record.correlation !== raw.correlation) {
        throw new KernelError('HF_LOG_CORRUPT', {
          seq: raw.seq,
          reason: 'its columns differ from its body',
        });
      }
      yield record;
      previous = raw.hash;
      expected = raw.seq + 1;
    }
  }
}
