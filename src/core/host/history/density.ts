import { LRUCache } from 'lru-cache';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { parseRecord } from '../../kernel/log/record.ts';
import { timeAt } from './moments.ts';
import { Pace } from './pace.ts';
import type { LogQuestion } from './questions.ts';
import { problemMarks } from './words.ts';

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

/** Records that are searched for failures at once. */
const WINDOW = 500;
/** A part of the log is asked about again and again: its answer does not wait for the failures for longer, milliseconds. */
const PATIENCE_MS = 100;

/** Which records failed, found out once for each window of the log. */
class Failures {
  /** The records that failed, in order, by the number of their window; only windows that are full stay as they are. */
  readonly #windows = new Map<number, readonly number[]>();

  /** Looks at the windows of a range, the newest first, as far as there is time. @throws the signal's reason */
  async find(
    { log, words, signal }: LogQuestion,
    { from, to, marks, enoughAt }: Record<'from' | 'to' | 'enoughAt', number> & { marks: readonly string[] },
  ): Promise<void> {
    const pace = new Pace(signal);
    const last = log.lastSeq();
    for (let window = windowOf(to); window >= windowOf(from); window -= 1) {
      const [begin, end] = [window * WINDOW, (window + 1) * WINDOW - 1];
      if (this.#windows.has(window) && end < last) continue;
      this.#windows.set(window, await problemsIn({ log, words }, begin, end, marks));
      if (performance.now() > enoughAt) return;
      await pace.next();
    }
  }

  /** @returns undefined where some of them were not looked at yet */
  between(first: number, last: number): number | undefined {
    let count = 0;
    for (let window = windowOf(first); first <= last && window <= windowOf(last); window += 1) {
      const failed = this.#windows.get(window);
      if (!failed) return undefined;
      for (const seq of failed) if (seq >= first && seq <= last) count += 1;
    }
    return count;
  }
}

const windowOf = (seq: number): number => Math.floor(seq / WINDOW);

async function problemsIn(
  { log, words }: Pick<LogQuestion, 'log' | 'words'>,
  from: number,
  to: number,
  marks: readonly string[],
): Promise<number[]> {
  const found: number[] = [];
  for (const page of log.pages({ from, to, holding: marks })) {
    for (const { seq, body } of page)
      if (await words.problemsOnly.only(parseRecord(seq, body))) found.push(seq);
  }
  return found;
}

/** Times whose first records are remembered. */
const MOST_EDGES = 2_000;

/** How the records of one log are spread over time. What was once found out stays true, and is kept. */
export class Density {
  readonly #failures = new Failures();
  /** The first record at or after a time, epoch milliseconds. */
  readonly #edges = new LRUCache<number, number>({ max: MOST_EDGES });

  /**
   * The records of a range in buckets of equal time; failures are counted as far as there is time.
   *
   * @param range records, inclusive; `count`: so many buckets at most
   * @param known the types of actors, whose words say what is a problem
   * @throws the signal's reason
   */
  async buckets(
    question: LogQuestion,
    { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
    known: readonly ActorDefinition[],
  ): Promise<Bucket[]> {
    const { log, signal } = question;
    if (log.lastSeq() === 0 || from > to) return [];
    const [start, end] = [timeAt(log, from), timeAt(log, to) + 1];
    const width = evenWidth((end - start) / count);
    const pace = new Pace(signal);
    const edges = [from];
    for (let index = 1; index < count && start + index * width < end; index += 1) {
      edges.push(this.#edgeAt(log, start + index * width, { least: edges.at(-1) ?? from, most: to + 1 }));
      await pace.next();
    }
    const isPart = from > log.firstSeq() || to < log.lastSeq();
    const patience = isPart ? performance.now() + PATIENCE_MS : question.enoughAt;
    const marks = problemMarks(known);
    const enoughAt = Math.min(question.enoughAt, patience);
    await this.#failures.find(question, { from, to, marks, enoughAt });
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

  #edgeAt(log: HistoryReader, time: number, { least, most }: Record<'least' | 'most', number>): number {
    const known = this.#edges.get(time);
    if (known !== undefined) return Math.min(most, Math.max(known, least));
    let [low, high] = [least, most];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (timeFrom(log, middle) < time) low = middle + 1;
      else high = middle;
    }
    if (low > least && low < most) this.#edges.set(time, low);
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
