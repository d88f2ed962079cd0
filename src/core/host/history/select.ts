import { EFFECT_FAILED, EFFECT_LOST } from '../../kernel/actors/effect.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import type { LogReader } from '../../kernel/log/event-log.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import { Pace } from './pace.ts';
import { firstSeqAt, type Place } from './place.ts';

/** Records that are read at once. */
const BATCH = 500;

/** What the text of a record is searched for. */
export interface TextPattern {
  /** As it was given. */
  readonly source: string;
  readonly test: (text: string) => boolean;
}

/** Which records are read. */
export interface Selection {
  /** Inclusive. */
  readonly from?: Place | undefined;
  /** Inclusive. */
  readonly to?: Place | undefined;
  /** A whole address, an actor type or its last word, a key, or a pattern of one with `*`. */
  readonly actor?: string | undefined;
  /** A whole id, or its last characters as lines show them. */
  readonly correlation?: string | undefined;
  /** An event type in any case, or a pattern with `*`. */
  readonly type?: string | undefined;
  /** Only what ended an effect so, or was not taken. */
  readonly outcome?: Outcome | undefined;
  /** Only records of which this is true, e.g. those that say that something failed or was refused. */
  readonly only?: ((record: LogRecord) => Promise<boolean>) | undefined;
  /** A pattern of the text that a record's line prints. */
  readonly grep?: Grep | undefined;
  /** What is left out: a list of stories has none with such a record. */
  readonly without?: Unwanted | undefined;
}

/** Records that are left out: each of these alone suffices. */
export type Unwanted = Pick<Selection, 'actor' | 'type' | 'grep'>;

/** How an effect ended, or that a machine took no notice of an event. */
export type Outcome = 'done' | 'failed' | 'lost' | 'ignored' | 'stale';

/** A pattern, and how the text of a record is made. */
export interface Grep extends TextPattern {
  readonly textOf: (record: LogRecord) => Promise<string>;
}

/** The selection's bounds as record numbers. */
export async function boundsOf(
  reader: LogReader,
  { from, to }: Selection,
): Promise<{ from: number; to: number }> {
  return {
    from: from === undefined ? 1 : 'seq' in from ? from.seq : await firstSeqAt(reader, from.at),
    to:
      to === undefined ? reader.lastSeq() : 'seq' in to ? to.seq : (await firstSeqAt(reader, to.at + 1)) - 1,
  };
}

/** @returns whether a record is wanted, whatever its place */
function matcher({ actor, correlation, type, outcome }: Selection): (record: LogRecord) => boolean {
  const isActor = actor === undefined ? undefined : actorMatcher(actor);
  const isType = type === undefined ? undefined : wildcardMatcher(type.toLowerCase());
  return (record) =>
    (isActor?.(record.actor) ?? true) &&
    (correlation === undefined || record.correlation.endsWith(correlation)) &&
    (isType?.(record.event.type.toLowerCase()) ?? true) &&
    (outcome === undefined || hasOutcome(record, outcome));
}

/**
 * The newest records of a selection, oldest first.
 *
 * @param limit the most that is returned
 * @returns `more` when older ones would have matched, too
 */
export async function newest(
  reader: LogReader,
  selection: Selection,
  limit: number,
  signal?: AbortSignal,
): Promise<{ records: LogRecord[]; more: boolean }> {
  const records: LogRecord[] = [];
  for await (const record of selected(reader, selection, true, signal)) {
    if (records.length === limit) return { records: records.reverse(), more: true };
    records.push(record);
  }
  return { records: records.reverse(), more: false };
}

/** All records of a selection, oldest first, some at a time. */
export async function* inBatches(
  reader: LogReader,
  selection: Selection,
  signal?: AbortSignal,
): AsyncIterable<LogRecord[]> {
  let batch: LogRecord[] = [];
  for await (const record of selected(reader, selection, false, signal)) {
    batch.push(record);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** The records of a selection, oldest first or newest first. The event loop gets its turn meanwhile. */
export async function* selected(
  reader: LogReader,
  selection: Selection,
  reverse: boolean,
  signal?: AbortSignal,
): AsyncIterable<LogRecord> {
  const matches = matcher(selection);
  const { actor, correlation, only, grep, without } = selection;
  const isUnwanted = without && unwantedMatcher(without);
  // The index narrows the search; the rest is matched record by record.
  const exact = {
    ...(actor !== undefined && isAddress(actor) && { actor }),
    ...(correlation !== undefined && isWholeId(correlation) && { correlation }),
  };
  const bounds = await boundsOf(reader, selection);
  const pace = new Pace(signal);
  for await (const record of reader.read({ ...bounds, ...exact, reverse })) {
    await pace.next();
    if (!matches(record) || (only && !(await only(record)))) continue;
    if (grep && !grep.test(await grep.textOf(record))) continue;
    if (!isUnwanted || !(await isUnwanted(record))) yield record;
  }
}

/** @returns whether a record is one of those that are left out */
export function unwantedMatcher({ actor, type, grep }: Unwanted): (record: LogRecord) => Promise<boolean> {
  const isActor = actor === undefined ? undefined : actorMatcher(actor);
  const isType = type === undefined ? undefined : wildcardMatcher(type.toLowerCase());
  return async (record) =>
    isActor?.(record.actor) === true ||
    isType?.(record.event.type.toLowerCase()) === true ||
    grep?.test(await grep.textOf(record)) === true;
}

/** @param wanted as `--actor` takes it */
export function actorMatcher(wanted: string): (actor: string) => boolean {
  if (isAddress(wanted)) return (actor) => actor === wanted;
  const isWanted = wildcardMatcher(wanted);
  return (actor) => {
    const { type, key } = parseActorRef(actor);
    return [actor, type, type.split('.').at(-1) ?? '', key].some(isWanted);
  };
}

/** Whether it names one actor, which is indexed. */
export function isAddress(actor: string): boolean {
  return actor.includes('/') && !actor.includes('*');
}

function isWholeId(correlation: string): boolean {
  return correlation.length >= 36;
}

/** `*` stands for anything. By hand: a regular expression of many `*` would take years for one name. */
export function wildcardMatcher(wanted: string): (text: string) => boolean {
  const [first = '', ...parts] = wanted.split('*');
  const last = parts.pop();
  if (last === undefined) return (text) => text === wanted;
  return (text) => {
    if (!text.startsWith(first)) return false;
    let from = first.length;
    for (const part of parts) {
      const at = text.indexOf(part, from);
      if (at < 0) return false;
      from = at + part.length;
    }
    return text.length - from >= last.length && text.endsWith(last);
  };
}

/** Whether a machine threw, or an effect failed or was lost with the process. */
export function isFailure({ event, failed }: LogRecord): boolean {
  return failed !== undefined || event.type === EFFECT_FAILED || event.type === EFFECT_LOST;
}

function hasOutcome({ event, ignored, stale }: LogRecord, outcome: Outcome): boolean {
  if (outcome === 'ignored') return ignored === true && !stale;
  return outcome === 'stale' ? stale === true : event.type === `effect.${outcome}`;
}
