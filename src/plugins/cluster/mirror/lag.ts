import type { Clock } from '../../../core/kernel/clock.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';

/** What is in the local log and not on the stream. */
export interface LagFigures {
  readonly records: number;
  /** About. */
  readonly bytes: number;
  /** Since the oldest of them became durable here, milliseconds; 0 when there is none. */
  readonly ms: number;
}

/** When a record became durable, by the clock of durations. */
interface Mark {
  readonly seq: number;
  readonly at: number;
}

/** So many are remembered; with more, every other one is forgotten, and the time is rounded up. */
const MOST_MARKS = 512;

/** Measures how far the stream is behind the local log. */
export class Lag {
  readonly #clock: Clock;
  readonly #reader: Pick<SqliteReader, 'usedBytes' | 'firstSeq' | 'lastSeq'>;
  #marks: Mark[] = [];

  constructor(clock: Clock, reader: Pick<SqliteReader, 'usedBytes' | 'firstSeq' | 'lastSeq'>) {
    this.#clock = clock;
    this.#reader = reader;
  }

  durable(seq: number): void {
    this.#marks.push({ seq, at: this.#clock.monotonic() });
    // What became durable first is kept: the record of a later mark counts from the one before.
    if (this.#marks.length > MOST_MARKS) this.#marks = this.#marks.filter((_, index) => index % 2 === 0);
  }

  acknowledged(seq: number): void {
    const done = this.#marks.findIndex((mark) => mark.seq > seq);
    if (done !== 0) this.#marks.splice(0, done < 0 ? this.#marks.length : done);
  }

  figures(acknowledged: number, durable: number): LagFigures {
    const records = Math.max(0, durable - acknowledged);
    if (records === 0) return { records, bytes: 0, ms: 0 };
    const [first, last] = [this.#reader.firstSeq(), this.#reader.lastSeq()];
    const bytes = Math.round((this.#reader.usedBytes() / Math.max(1, last - first + 1)) * records);
    const oldest = this.#marks.find(({ seq }) => seq > acknowledged)?.at ?? this.#clock.monotonic();
    return { records, bytes, ms: Math.round(this.#clock.monotonic() - oldest) };
  }
}
