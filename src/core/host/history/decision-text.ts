import type { Decision } from '../../kernel/actors/transition.ts';
import { delayOf, type LogRecord, TIMER_CANCEL, TIMER_START } from '../../kernel/log/record.ts';
import type { Difference } from '../../kernel/replay/findings.ts';
import { cut, plainText, stateName, timeOfDay } from '../terminal.ts';
import type { Describe } from './words.ts';

/** Describes a decision as if it had been recorded. */
export function inWords(
  { seq, at, actor, event }: Difference,
  decision: Decision | undefined,
  words: Describe | undefined,
): string | undefined {
  if (!words || !decision || decision.ignored || decision.stale || decision.failed !== undefined)
    return undefined;
  const record = { ...decision, seq, at, actor, event, machine: '', version: 0, correlation: '' };
  const text = words(record as LogRecord);
  return text === undefined ? undefined : cut(plainText(text), 160);
}

/** Where a decision that differs stands: record, time, actor and event. */
export function headOf({ seq, at, actor, event, kind }: Difference): string {
  const name = delayOf(event.type);
  const what = name === undefined ? event.type : `after ${name}`;
  const where = {
    decided: `record ${seq}`,
    dropped: `record ${seq} (dropped)`,
    inserted: `after record ${seq} (inserted)`,
    timer: `after record ${seq} (a timer that did not expire)`,
  }[kind];
  return plainText(`${where}  ${timeOfDay(at)}  ${actor}  ${what}`);
}

/** A decision in short: the state that it led to, what it asked for, and which fields of the context it changed. */
export function short({ to, effects, ignored, stale, failed }: Decision): string {
  const marks = [failed !== undefined && 'threw', stale ? 'stale' : ignored && 'ignored'].filter(Boolean);
  const asks = effects.flatMap(({ type }) => (type === TIMER_START || type === TIMER_CANCEL ? [] : [type]));
  const fields = Object.keys(to.context ?? {});
  return plainText(
    [
      stateName(to.value),
      ...marks.map((mark) => `(${mark})`),
      ...(asks.length > 0 ? [`⇒ ${asks.join(', ')}`] : []),
      ...(fields.length > 0 ? [`context: ${fields.join(', ')}`] : []),
    ].join('  '),
  );
}
