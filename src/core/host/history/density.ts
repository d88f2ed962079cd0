import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { parseRecord } from '../../kernel/log/record.ts';
import { timeAt } from './moments.ts';
import { Pace } from './pace.ts';
import { firstSeqAt } from './place.ts';
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

/** Words without which no record is a failure: most records need not be parsed. */
const MARKS = ['"failed"', '"effect.failed"', '"effect.lost"'];

/** How many records failed, counted once: from the newest record back, as far as there was time. */
export class FailureCounts {
  /** The records that failed, in order, of those from `#low` to `#high`. */
  #failed: number[] = [];
  #low = 0;
  #high = 0;

  /** Goes on counting until `enoughAt`. @throws the signal's reason */
  async count({ log, signal, enoughAt }: LogQuestion): Promise<void> {
    const [first, last] = [log.firstSeq(), log.lastSeq()];
    const pace = new Pace(signal);
    if (this.#high === 0) [this.#low, this.#high] = [last + 1, last];
    for (const page of log.pages({ from: this.#high + 1, to: last })) {
      this.#failed.push(...failuresIn(page));
      this.#high = page.at(-1)?.seq ?? this.#high;
      await pace.next();
    }
    for (const page of log.pages({ from: first, to: this.#low - 1, reverse: true })) {
      this.#failed.unshift(...failuresIn(page.toReversed()));
      this.#low = page.at(-1)?.seq ?? this.#low;
      if (performance.now() > enoughAt) return;
      await pace.next();
    }
    this.#low = Math.min(this.#low, first);
  }

  /** @returns undefined where some of them were not counted yet */
  between(first: number, last: number): number | undefined {
    if (first > last) return 0;
    if (first < this.#low || last > this.#high) return undefined;
    return placeOf(this.#failed, last + 1) - placeOf(this.#failed, first);
  }
}

function failuresIn(page: readonly { readonly seq: number; readonly body: string }[]): number[] {
  return page
    .filter(({ seq, body }) => MARKS.some((mark) => body.includes(mark)) && isFailure(parseRecord(seq, body)))
    .map(({ seq }) => seq);
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

/**
 * The records of a range in buckets of equal time.
 *
 * @param range records, inclusive
 */
export async function bucketsOf(
  question: LogQuestion,
  { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
  failures: FailureCounts,
): Promise<Bucket[]> {
  const { log, signal } = question;
  if (log.lastSeq() === 0 || from > to) return [];
  const [start, end] = [timeAt(log, from), timeAt(log, to) + 1];
  const width = Math.max(1, (end - start) / count);
  const pace = new Pace(signal);
  const edges = [from];
  for (let index = 1; index < count && start + index * width < end; index += 1) {
    const edge = await edgeAt(log, start + index * width, edges.at(-1) ?? from, to);
    edges.push(edge);
    await pace.next();
  }
  await failures.count(question);
  return edges.map((first, index) => {
    const last = (edges[index + 1] ?? to + 1) - 1;
    const failed = failures.between(first, last);
    return {
      ...{ first, last, records: countOf(log, first, last) },
      start: Math.round(start + index * width),
      end: Math.round(Math.min(end, start + (index + 1) * width)),
      ...(failed !== undefined && { failed }),
    };
  });
}

/** A log of some actors alone has gaps. */
function countOf(log: HistoryReader, first: number, last: number): number {
  if (!log.partial) return Math.max(0, last - first + 1);
  let count = 0;
  for (const page of log.pages({ from: first, to: last })) count += page.length;
  return count;
}

async function edgeAt(log: HistoryReader, time: number, least: number, most: number): Promise<number> {
  return Math.min(Math.max(await firstSeqAt(log, time), least), most + 1);
}
