import type { LogRecord } from '../../kernel/log/record.ts';
import type { LogQuestion } from './questions.ts';
import { printedText } from './record-text.ts';
import { type Grep, isAddress, type Selection, selected } from './select.ts';
import { type Refuse, textFilter } from './text-pattern.ts';

/** Records that are searched between two looks at the clock. */
const WINDOW = 10_000;

/** A page of records by their numbers. */
export interface PageRange {
  /** Inclusive. */
  readonly from: number;
  /** Inclusive. */
  readonly to: number;
  readonly limit: number;
  /** Newest first. */
  readonly reverse: boolean;
}

/**
 * The first records of a range that a selection takes. A long search ends with what it has.
 *
 * @returns `end`: the last record that was looked at; absent when all of the range was
 */
export async function pageOf(
  { log, signal, enoughAt }: LogQuestion,
  selection: Selection,
  { from, to, limit, reverse }: PageRange,
): Promise<{ records: LogRecord[]; end?: number }> {
  const records: LogRecord[] = [];
  const { actor, correlation } = selection;
  const isIndexed = correlation !== undefined || (actor !== undefined && isAddress(actor));
  const size = isIndexed ? Number.POSITIVE_INFINITY : WINDOW;
  for (let [low, high] = [from, to]; low <= high; ) {
    const part = reverse
      ? { from: { seq: Math.max(low, high - size + 1) }, to: { seq: high } }
      : { from: { seq: low }, to: { seq: Math.min(high, low + size - 1) } };
    for await (const record of selected(log, { ...selection, ...part }, reverse, signal)) {
      records.push(record);
      const isLast = record.seq === (reverse ? from : to);
      if (records.length === limit) return { records, ...(!isLast && { end: record.seq }) };
    }
    const end = reverse ? part.from.seq : part.to.seq;
    if (reverse) high = end - 1;
    else low = end + 1;
    if (low <= high && performance.now() > enoughAt) return { records, end };
  }
  return { records };
}

/**
 * The part of a selection that finds texts in the lines of records, and leaves some out.
 *
 * @param text as `textFilter` takes it
 * @throws what `refuse` makes
 */
export function textSearch(
  text: string,
  { words }: Pick<LogQuestion, 'words'>,
  refuse: Refuse,
): { readonly grep?: Grep; readonly unwanted?: Grep } {
  const { wanted, unwanted } = textFilter(text, refuse);
  const textOf = (record: LogRecord) => printedText(record, words, true);
  return {
    ...(wanted.length > 0 && {
      grep: { source: text, textOf, test: (line: string) => wanted.every((one) => one.test(line)) },
    }),
    ...(unwanted.length > 0 && {
      unwanted: { source: text, textOf, test: (line: string) => unwanted.some((one) => one.test(line)) },
    }),
  };
}
