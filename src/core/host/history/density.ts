import { LRUCache } from 'lru-cache';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { parseRecord } from '../../kernel/log/record.ts';
import { timeAt } from './moments.ts';
import { Pace } from './pace.ts';
import type { LogQuestion } from './questions.ts';
import { isFailure } from './select.ts';

/** A part of the log, of a length of time. */
export interface Bucket {
  readonly first: number;
  /** One before `first` where it has no record. */
  readonly last: number;
  /** Epoch milliseconds; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly records: number;
  /** Absent where they were not counted yet. */
  readonly failed?: number;
}

/** Texts without which no record is a failure: most records need not be read. */
const MARKS = ['"failed"', '"effect.failed"', '"effect.lost"'];
/** Records that are searched for failures at once. */
const WINDOW = 500;

/** How many records failed, counted once: from the newest record back, as far as there was time. */
class FailureCounts {
  /** The records that failed, in order, of those from `#low` to `#high`. */
  #failed: number[] = [];
  #low = 0;
  #high = 0;

  /** Goes on counting until `enoughAt`. @throws the signal's reason */
  async count({ log, signal, enoughAt }: LogQuestion): Promise<void> {
    const [first, last] = [log.firstSeq(), log.lastSeq()];
    const pace = new Pace(signal);
    if (this.#high === 0) [this.#low, this.#high] = [last + 1, last];
    while (this.#high < last) {
      const to = Math.min(last, this.#high + WINDOW);
      this.#failed.push(...failuresIn(log, this.#high + 1, to));
      this.#high = to;
      await pace.next();
    }
    while (this.#low > first) {
      const from = Math.max(first, this.#low - WINDOW);
      this.#failed.unshift(...failuresIn(log, from, this.#low - 1));
      this.#low = from;
      if (performance.now() > enoughAt) return;
      await pace.next();
    }
  }

  /** @returns undefined where some of them were not counted yet */
  between(first: number, last: number): number | undefined {
    if (first > last) return 0;
    if (first < this.#low || last > this.#high) return undefined;
    return placeOf(this.#failed, last + 1) - placeOf(this.#failed, first);
  }
}

function failuresIn(log: HistoryReader, from: number, to: number): number[] {
  const failed: number[] = [];
  for (const page of log.pages({ from, to, holding: MARKS })) {
    for (const { seq, body } of page) {
      if (MARKS.some((mark) => body.includes(mark)) && isFailure(parseRecord(seq, body))) failed.push(seq);
    }
  }
  return failed;
}

/** The place of the first number that is not smaller. */
function placeOf(sorted: readonly number[], wanted: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Times whose first records are remembered. */
const MOST_EDGES = 2_000;

/** How the records of one log are spread over time. What was once found out stays true, and is kept. */
export class Density {
  readonly #failures = new FailureCounts();
  /** The first record at or after a time, epoch milliseconds. */
  readonly #edges = new LRUCache<number, number>({ max: MOST_EDGES });

  /**
   * The records of a range in buckets of equal time; failures are counted as far as there is time.
   *
   * @param range records, inclusive; `count`: so many buckets at most
   * @throws the signal's reason
   */
  async buckets(
    question: LogQuestion,
    { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
  ): Promise<Bucket[]> {
    const { log, signal } = question;
    if (log.lastSeq() === 0 || from > to) return [];
    const [start, end] = [timeAt(log, from), timeAt(log, to) + 1];
    const width = evenWidth((end - start) / count);
    const pace = new Pace(signal);
    const edges = [from];
    for (let index = 1; index < count && start + index * width < end; index += 1) {
      const known = this.#edgeAt(log, start + index * width, edges.at(-1) ?? from);
      edges.push(Math.min(known, to + 1));
      await pace.next();
    }
    await this.#failures.count(question);
    return edges.map((first, index) => {
      const last = (edges[index + 1] ?? to + 1) - 1;
      const failed = this.#failures.between(first, last);
      return {
        ...{ first, last, records: countOf(log, first, last) },
        start: Math.round(start + index * width),
        end: Math.round(Math.min(end, start + (index + 1) * width)),
        ...(failed !== undefined && { failed }),
      };
    });
  }

  /** @param least where the time of the edge before is */
  #edgeAt(log: HistoryReader, time: number, least: number): number {
    const known = this.#edges.get(time);
    if (known !== undefined) return Math.max(known, least);
    let [low, high] = [least, log.lastSeq() + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (timeFrom(log, middle) < time) low = middle + 1;
      else high = middle;
    }
    if (low <= log.lastSeq()) this.#edges.set(time, low);
    return low;
  }
}

/** The time of the first record that is not before one, epoch milliseconds. */
function timeFrom(log: HistoryReader, seq: number): number {
  for (const [raw] of log.pages({ from: seq, limit: 1 })) if (raw) return parseRecord(raw.seq, raw.body).at;
  return Number.POSITIVE_INFINITY;
}

/** A little more, so that a log that grows keeps its buckets for some time. */
function evenWidth(ms: number): number {
  const step = 2 ** Math.floor(Math.log2(Math.max(1, ms))) / 16;
  return Math.ceil(Math.max(1, ms) / step) * step;
}

/** A log of some actors alone has gaps. */
function countOf(log: HistoryReader, first: number, last: number): number {
  if (!log.partial) return Math.max(0, last - first + 1);
  let count = 0;
  for (const page of log.pages({ from: first, to: last })) count += page.length;
  return count;
}
