import { effectId, seqOfEffect } from '../../kernel/ids.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import {
  delayOf,
  type LogRecord,
  parseRecord,
  TIMER_CANCEL,
  timerOf,
  timerStartOf,
} from '../../kernel/log/record.ts';
import { textOf } from './answer-text.ts';
import { Pace } from './pace.ts';
import { pageOf } from './pages.ts';
import type { LogQuestion } from './questions.ts';
import { recordRows } from './record-rows.ts';
import { type Selection, unwantedMatcher } from './select.ts';

/** A summary reads so many records of a story; of a longer one it says so. */
const MOST_READ = 500;
/** Actors that a summary names. */
const MOST_ACTORS = 12;
/** Records that are looked at between two decisions whether there are stories enough. */
const BATCH = 200;

/** All that followed from one cause, in short. */
export interface StorySummary {
  readonly id: string;
  /** Its first record as one sentence. */
  readonly title: string;
  readonly first: number;
  readonly last: number;
  /** Epoch milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly records: number;
  /** The story has more records than were read: the rest is of the first ones. */
  readonly more: boolean;
  readonly actors: readonly string[];
  /** Something in it failed or was refused. */
  readonly failed: boolean;
  /** What did so last, as one sentence, where that is another record than the one of the title. */
  readonly failure?: string;
}

/**
 * The stories with a record that a selection takes, by the newest such record, newest first.
 *
 * @param range `from` and `to`: such a record lies between them; `upTo`: the newest record that counts; `before`: stories that
 *   have such a record from here on were listed before
 * @returns `next`: the `before` of the next page
 */
export async function storiesOf(
  question: LogQuestion,
  selection: Selection,
  { from, to, upTo, before, limit }: StoryRange,
): Promise<{ stories: StorySummary[]; next?: number }> {
  const { signal, enoughAt } = question;
  const stories: StorySummary[] = [];
  const seen = new Set<string>();
  const pace = new Pace(signal);
  const isUnwanted = selection.without && unwantedMatcher(selection.without);
  for (let high = Math.min(before - 1, to); high >= from; ) {
    const range = { from, to: high, limit: BATCH, reverse: true };
    const { records, end } = await pageOf(question, selection, range);
    for (const { seq, correlation } of records) {
      if (seen.has(correlation)) continue;
      // Each page goes on by a story at least, however slow the machine is.
      if (stories.length === limit || (seen.size > 0 && performance.now() > enoughAt))
        return { stories, next: seq + 1 };
      seen.add(correlation);
      await pace.next();
      if (await wasListed(question, { ...selection, correlation }, before, to)) continue;
      const records = await recordsOf(question, correlation, { from: 1, upTo, most: MOST_READ + 1 });
      if (isUnwanted && (await hasOne(records, isUnwanted, pace))) continue;
      stories.push(await summaryOf(question, correlation, upTo, records));
    }
    if (end === undefined) return { stories };
    high = end - 1;
    if (performance.now() > enoughAt) return { stories, ...(high >= from && { next: high + 1 }) };
  }
  return { stories };
}

/** Which stories are listed. */
export interface StoryRange {
  readonly from: number;
  readonly to: number;
  readonly upTo: number;
  readonly before: number;
  readonly limit: number;
}

async function hasOne(
  records: readonly LogRecord[],
  matches: (record: LogRecord) => Promise<boolean>,
  pace: Pace,
): Promise<boolean> {
  for (const record of records) {
    if (await matches(record)) return true;
    await pace.next();
  }
  return false;
}

async function wasListed(
  question: LogQuestion,
  selection: Selection,
  before: number,
  to: number,
): Promise<boolean> {
  if (before > to) return false;
  const { records } = await pageOf(question, selection, { from: before, to, limit: 1, reverse: false });
  return records.length > 0;
}

async function summaryOf(
  { log, words }: LogQuestion,
  id: string,
  upTo: number,
  records: readonly LogRecord[],
): Promise<StorySummary> {
  const more = records.length > MOST_READ;
  const last = more ? newestOf(log, id, upTo) : records.at(-1);
  const [first] = records;
  if (!first || !last) throw new Error('a story has a record');
  await words.prepare(records);
  const problem = records.findLast(words.isProblem);
  const [row, failure] = await recordRows(problem && problem !== first ? [first, problem] : [first], words);
  return {
    id: textOf(id),
    title: row?.text ?? '',
    ...{ first: first.seq, last: last.seq, start: first.at, end: last.at },
    ...{ records: Math.min(records.length, MOST_READ), more },
    actors: [...new Set(records.map(({ actor }) => textOf(actor)))].slice(0, MOST_ACTORS),
    failed: problem !== undefined,
    ...(failure && { failure: failure.text }),
  };
}

/** The first records of a story in a range. @throws the signal's reason */
export async function recordsOf(
  { log, signal }: LogQuestion,
  correlation: string,
  { from, upTo, most }: { readonly from: number; readonly upTo: number; readonly most: number },
): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  const pace = new Pace(signal);
  for (const page of log.pages({ correlation, from, to: upTo, limit: most })) {
    for (const { seq, body } of page) {
      records.push(parseRecord(seq, body));
      if (records.length === most) return records;
      await pace.next();
    }
  }
  return records;
}

function newestOf(log: HistoryReader, correlation: string, upTo: number): LogRecord | undefined {
  for (const [raw] of log.pages({ correlation, to: upTo, reverse: true, limit: 1 }))
    if (raw) return parseRecord(raw.seq, raw.body);
  return undefined;
}

/** An effect or a timer of a story, from the record that requested it to the one that ended it. */
export interface Span {
  readonly id: string;
  readonly kind: 'effect' | 'timer';
  /** Type of the effect, or name of the timer. */
  readonly type: string;
  readonly actor: string;
  /** The record that requested it, and its time. */
  readonly seq: number;
  readonly asked: number;
  /** When a timer expires, epoch milliseconds. */
  readonly due?: number;
  readonly endedBy?: number;
  readonly ended?: number;
  /** E.g. `done`, `failed`, `expired`, `cancelled`; absent while it is open. */
  readonly outcome?: string;
}

/** Later records of an actor in which the cancellation of its timer is looked for: another story may have cancelled it. */
const LOOK_AHEAD = 200;
/** So many of them at once: most are cancelled by one of the next. */
const FEW = 20;

/** How an effect or a timer of an earlier part of a story ended. */
export interface SpanEnd {
  readonly id: string;
  readonly endedBy: number;
  readonly ended: number;
  readonly outcome: string;
}

/**
 * The effects and timers that the records of a part of a story requested, and the ends of those that an earlier part did.
 *
 * @param records in order
 * @param upTo the newest record that counts
 * @throws the signal's reason
 */
export async function spansOf(
  question: LogQuestion,
  records: readonly LogRecord[],
  upTo: number,
): Promise<{ spans: Span[]; ends: SpanEnd[] }> {
  const outcomes = new Map(
    records.flatMap((one) => (one.outcome === undefined || one.stale ? [] : [[one.outcome, one] as const])),
  );
  const first = records[0]?.seq ?? 0;
  const ends = [...outcomes]
    .filter(([id]) => seqOfEffect(id) < first)
    .map(([id, end]) => ({ id, endedBy: end.seq, ended: end.at, outcome: outcomeName(end) }));
  const spans: Span[] = [];
  const pace = new Pace(question.signal);
  for (const record of records) {
    for (const [index, effect] of record.effects.entries()) {
      if (effect.type === TIMER_CANCEL) continue;
      const id = effectId(record.seq, index);
      const timer = timerStartOf(effect);
      const outcome = outcomes.get(id);
      const cancelled =
        timer && !outcome ? cancellation(question, record, { timer: timer.timer, upTo }) : undefined;
      const end = outcome ?? cancelled;
      spans.push({
        id,
        kind: timer ? 'timer' : 'effect',
        type: textOf(timer ? (delayOf(timer.timer) ?? timer.timer) : effect.type),
        actor: textOf(record.actor),
        seq: record.seq,
        asked: record.at,
        ...(timer && { due: timer.at }),
        ...(end && {
          endedBy: end.seq,
          ended: end.at,
          outcome: cancelled ? 'cancelled' : outcomeName(end),
        }),
      });
      await pace.next();
    }
  }
  return { spans, ends };
}

function cancellation(
  { log }: LogQuestion,
  { actor, seq }: LogRecord,
  { timer, upTo }: { readonly timer: string; readonly upTo: number },
): LogRecord | undefined {
  let left = LOOK_AHEAD;
  for (const page of log.pages({ actor, from: seq + 1, to: upTo, limit: FEW })) {
    for (const raw of page) {
      const record = parseRecord(raw.seq, raw.body);
      if (record.effects.some((effect) => timerOf(effect) === timer)) return record;
      left -= 1;
      if (left === 0) return undefined;
    }
  }
  return undefined;
}

function outcomeName({ event }: LogRecord): string {
  if (delayOf(event.type) !== undefined) return 'expired';
  return textOf(event.type.replace(/^effect\./, ''));
}
