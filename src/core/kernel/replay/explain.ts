import { EFFECT_DONE, EFFECT_FAILED, EFFECT_LOST } from '../actors/effect.ts';
import { seqOfEffect } from '../ids.ts';
import { jsonEqual } from '../json.ts';
import type { HistoryReader } from '../log/event-log.ts';
import {
  ADOPT,
  delayOf,
  INIT,
  type LogRecord,
  type Origin,
  type StateValue,
  TIMER_CANCEL,
  TIMER_START,
  timerStarted,
} from '../log/record.ts';
import { type Since, sinceSteps } from './since.ts';

/** One step of a chain of causes. */
export interface Link {
  readonly record: LogRecord;
  /** The record that led to it; absent at the source, and where it is not in this log any more. */
  readonly cause?: LogRecord;
  /** Its cause stands in records that are not here. */
  readonly cut?: true;
  /** Absent for an actor's first record. */
  readonly since?: Since;
}

/**
 * The chain of causes of a record, from its source to the record itself. Yields often.
 *
 * @param most so many of them, those nearest to the record
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export function* causeSteps(
  reader: HistoryReader,
  seq: number,
  most = Number.POSITIVE_INFINITY,
): Generator<undefined, Link[]> {
  const chain: Link[] = [];
  for (let record = reader.record(seq); ; ) {
    const before = causeOf(record);
    // A cause has a smaller number; without this check a forged log could lead in a circle.
    const isHere = before !== undefined && before < record.seq && reader.hashOf(before) !== undefined;
    const cause = isHere ? reader.record(before) : undefined;
    const cut = before !== undefined && !cause;
    chain.push({
      record,
      ...(cut && { cut }),
      ...(cause && { cause }),
      ...(yield* sinceLink(reader, record)),
    });
    if (!cause || chain.length >= most) return chain.reverse();
    record = cause;
    yield;
  }
}

function* sinceLink(reader: HistoryReader, record: LogRecord): Generator<undefined, Pick<Link, 'since'>> {
  const since = yield* sinceSteps(reader, record);
  return since ? { since } : {};
}

function causeOf({ cause, outcome }: LogRecord): number | undefined {
  return cause ?? (outcome === undefined ? undefined : seqOfEffect(outcome));
}

/** The words for what a record holds. */
export interface Wording {
  readonly describe: (record: LogRecord) => string | undefined;
  readonly state: (value: StateValue) => string;
  readonly duration: (ms: number) => string;
}

/** One step in sentences: what reached the actor and why, what became of it, and what it asked for. */
export function sentenceOf({ record, cause, cut, since }: Link, wording: Wording): string {
  const words = wording.describe(record);
  return [
    `${record.actor} ${reached(record, cause, cut, wording)}${words ? `: ${words.replace(/\.$/, '')}` : ''}.`,
    became(record, wording),
    since ? enteredSince(record, since, cause, wording) : '',
    since ? decidedSince(record, since, wording) : '',
    askedFor(record, wording),
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

function reached(
  { event, cause: before, origin, outcome, at, uid }: LogRecord,
  cause: LogRecord | undefined,
  cut: true | undefined,
  { duration }: Wording,
): string {
  const name = delayOf(event.type);
  const later = cause ? `${duration(at - cause.at)} after` : 'some time after';
  if (outcome !== undefined) {
    const by = seqOfEffect(outcome);
    if (name !== undefined) return `was woken by its timer ${name}, ${later} record ${by} had set it`;
    const effect = cause?.effects[Number(outcome.slice(outcome.indexOf('.') + 1))]?.type ?? 'what';
    const result =
      event.type === EFFECT_DONE
        ? `that ${effect} is done`
        : event.type === EFFECT_FAILED
          ? `that ${effect} failed (${event.code}: ${event.message})`
          : event.type === EFFECT_LOST
            ? `that ${effect} was lost with the process`
            : `${event.type}, the outcome of ${effect}`;
    return `heard ${result}, ${later} record ${by} had asked for it`;
  }
  if (event.type === ADOPT)
    return `took over from host ${event.host}, which had left it with its record ${event.seq}`;
  const what = event.type === INIT ? 'was started' : `got ${event.type}`;
  if (cause)
    return `${what} because of record ${cause.seq} of ${cause.actor}, ${duration(at - cause.at)} before`;
  if (origin) return `${what} because of ${originText(origin)}`;
  return `${what} ${cut ? `because of record ${before}, which is not in this log (name the export or archive that holds it before this one)` : `from outside${uid === undefined ? '' : ` (by ${senderText(uid)})`}`}`;
}

/** A record of another host, as a part of a sentence. */
export function originText({ host, seq }: Origin): string {
  return seq === undefined ? `host ${host}` : `record ${seq} of host ${host}`;
}

/** Who sent an event, as a part of a sentence. */
export function senderText(uid: NonNullable<LogRecord['uid']>): string {
  return uid === 'unknown' ? 'a user who is not known' : `the user with uid ${uid}`;
}

function became({ from, to, ignored, stale, failed }: LogRecord, { state }: Wording): string {
  if (failed !== undefined) return `Its machine threw (${failed}), so it stayed ${state(to.value)}.`;
  if (stale) return 'Nothing waited for it any more, so nothing changed.';
  if (ignored) return `In ${state(to.value)} that changes nothing.`;
  const end = to.done ? ', which is final' : '';
  const kept = Object.keys(to.context ?? {});
  const memory = kept.length > 0 ? ` and changed what it knows of ${list(kept)}` : '';
  if (from === undefined) return `It began ${state(to.value)}${end}.`;
  if (jsonEqual(from, to.value)) return `It stayed ${state(to.value)}${memory}.`;
  return `It went from ${state(from)} to ${state(to.value)}${end}${memory}.`;
}

function enteredSince(
  { at, from }: LogRecord,
  { entered }: Since,
  cause: LogRecord | undefined,
  wording: Wording,
): string {
  const state = wording.state(from ?? '');
  if (!entered) return `It had been ${state} since before this log begins.`;
  // A cause that the sentence names already is not repeated.
  if (entered.seq === cause?.seq) return '';
  return `It had been ${state} since ${earlier(entered, at, wording)}.`;
}

function decidedSince({ at }: LogRecord, { entered, decidedBy }: Since, wording: Wording): string {
  if (!decidedBy) return '';
  const { revision, record } = decidedBy;
  if (record.seq === entered?.seq)
    return `That was decided by revision ${revision}, which the same record made.`;
  return `That was decided by revision ${revision}, made by ${earlier(record, at, wording)}.`;
}

/** A record in short: `record 51 (KEY_REVOKED: revoked by ann), 3 s before`. */
function earlier(record: LogRecord, at: number, { describe, duration }: Wording): string {
  const words = describe(record)?.replace(/\.$/, '');
  const what = delayOf(record.event.type) ?? record.event.type;
  return `record ${record.seq} (${what}${words ? `: ${words}` : ''}), ${duration(at - record.at)} before`;
}

function askedFor({ effects, at }: LogRecord, { duration }: Wording): string {
  const asks = effects.flatMap(({ type }) => (type === TIMER_START || type === TIMER_CANCEL ? [] : [type]));
  const timers = effects.flatMap((effect) => {
    if (effect.type !== TIMER_START) return [];
    const { timer: event, at: deadline } = timerStarted(effect);
    return [`${delayOf(event) ?? event} to go off in ${duration(deadline - at)}`];
  });
  return [
    asks.length > 0 ? `It asked for ${list(asks)}.` : '',
    timers.length > 0 ? `It set its timer ${list(timers)}.` : '',
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

function list(words: readonly string[]): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
