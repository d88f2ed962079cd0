import { recover } from '../actors/recover.ts';
import type { ActorState } from '../actors/transition.ts';
import { CoreError } from '../errors/core-error.ts';
import type { SqliteReader } from '../log/sqlite-reader.ts';

/** Every actor as of a record. */
export interface Moment {
  readonly seq: number;
  /** Epoch milliseconds of the record. */
  readonly at: number;
  /** By address in order. */
  readonly actors: readonly ActorState[];
}

/**
 * Every actor as it was right after a record (C7): the newest states saved before it, and the records since.
 *
 * @param seq in a log of some actors only, the newest record not after it counts
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export function momentAt(reader: SqliteReader, seq: number): Moment {
  const [first, last] = [reader.firstSeq(), reader.lastSeq()];
  if (first === 0 || seq < first || seq > last) throw new CoreError('HF_LOG_RANGE', { seq, first, last });
  const { states, newest } = recover(reader, seq);
  const actors = [...states.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
  return { seq, at: newest.at, actors };
}
