import { textOf } from '../../core/host/history/answer-text.ts';
import { recordText } from '../../core/host/history/record-text.ts';
import { shown } from '../../core/host/history/shown.ts';
import type { StoryLine } from '../../core/host/history/story.ts';
import type { Describe } from '../../core/host/history/words.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { isoOf } from './places.ts';

/** A page ends before its items have more characters than this, so that it fits into an agent's context. */
const PAGE_CHARACTERS = 24_000;
/** As many of the first items as fit on a page. */
export function fitting<T>(items: readonly T[], most: number): readonly T[] {
  let characters = 0;
  const end = items.findIndex((item, index) => {
    characters += JSON.stringify(item).length;
    return index >= most || (index > 0 && characters > PAGE_CHARACTERS);
  });
  return end < 0 ? items : items.slice(0, end);
}

/** A line of a story, as tools give it. */
export interface Line {
  readonly record: number;
  readonly at: string;
  readonly actor: string;
  readonly what: string;
  readonly state?: string;
  readonly requests?: string[];
  readonly cause?: number;
  readonly others?: string[];
}

/** So many of the actors that did the same are named. */
const OTHERS = 12;

export function lineOf({ records, text, cause }: StoryLine): Line {
  const [first, ...others] = records;
  if (!first) throw new Error('a line has a record');
  return {
    record: first.seq,
    at: isoOf(first.at),
    actor: textOf(first.actor),
    what: textOf(text.what),
    ...(text.state !== '' && { state: textOf(text.state) }),
    ...(text.effects.length > 0 && { requests: text.effects.map((one) => textOf(one, 200)) }),
    ...(cause && { cause: cause.seq }),
    ...(others.length > 0 && { others: others.slice(0, OTHERS).map(({ actor }) => textOf(actor)) }),
  };
}

/** One record as a line. */
export function recordLine(record: LogRecord, describe: Describe): Line {
  const printable = shown(record);
  const text = recordText(printable, describe(printable) || undefined, false);
  const { cause } = record;
  return lineOf({
    records: [printable],
    text,
    cause: cause === undefined ? undefined : { seq: cause, direct: true },
  });
}
