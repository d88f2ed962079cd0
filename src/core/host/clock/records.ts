/** What jumps of the wall clock leave in the log, and what a health page and `holdfast doctor` say of them: enough without the machine. */
import { HIDDEN, routineWords } from '../../kernel/actors/definition.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { ClockJump } from '../../kernel/clock-jumps.ts';
import { isObject, type Json } from '../../kernel/json.ts';
import { CLOCK, delayOf, type LogRecord } from '../../kernel/log/record.ts';
import type { CheckContext, CheckResult } from '../plugin/diagnosis.ts';
import { duration } from '../terminal.ts';

export interface ClockContext {
  /** Oldest first. */
  readonly jumps: readonly ClockJump[];
  /** All jumps that ever were, milliseconds ahead. */
  readonly totalMs: number;
  /** Those that are open, milliseconds ahead; 0 while the clock is taken as right. */
  readonly aheadMs: number;
  /** The newest jump came while nothing ran. */
  readonly whileStopped: boolean;
  /** An alert says so. */
  readonly announced: boolean;
}

/** What the actor remembers; undefined when the clock has never jumped. */
export function clockContextOf(state: Readonly<ActorState> | undefined): ClockContext | undefined {
  return state?.context as ClockContext | undefined;
}

/** A jump that is open, as a sentence without its end. */
export function jumpText({ aheadMs, whileStopped }: ClockContext): string {
  const where = `The clock is ${duration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return whileStopped
    ? `${where} where the last run left it: it was set, or nothing ran for that long`
    : `${where} the time that passed: it was set`;
}

/** A record of it in few words. */
export function describeClock(record: LogRecord): string | undefined {
  const { event } = record;
  if (event.type === CLOCK.event) {
    const byMs = Number(event.byMs);
    const when = event.whileStopped === true ? ' while nothing ran' : '';
    return `the clock was set ${duration(Math.abs(byMs))} ${byMs > 0 ? 'ahead' : 'back'}${when}`;
  }
  if (delayOf(event.type) === 'accepted') return 'the clock is taken as right after a day';
  return event.type === 'init'
    ? HIDDEN
    : routineWords(record, { ANNOUNCE: 'the jump is announced by an alert' });
}

/** The fact of health pages; it degrades the instance while a jump is open. */
export function clockFact(context: ClockContext | undefined): Json {
  return openJumpFact(context) ?? { state: 'ok', text: 'goes on with the time that passes' };
}

/** What the log of a stopped instance says: nothing looks at the clock, so it is never good. */
export function openJumpFact(context: ClockContext | undefined): Json | undefined {
  if (!context || context.aheadMs === 0) return undefined;
  const text = jumpText(context);
  return { ok: false, state: 'jumped', reason: text, aheadMs: context.aheadMs, text };
}

/** What `holdfast doctor` says of jumps of the wall clock. */
export function clockCheck({ facts, running }: CheckContext): CheckResult {
  const lookedAt = running ? 'the health page of the instance' : 'the log that the last instance left';
  const fact = facts?.clock;
  const remedy =
    'Check the time service (`timedatectl`). When the clock is right again, or has gone on for a day, this ends by itself.';
  if (!isObject(fact)) {
    const found = 'nothing runs here that looks at the clock, or no health page says so';
    return { state: 'unknown', lookedAt, found, remedy: 'Start the instance: it looks all the time.' };
  }
  const found = String(fact.text);
  if (fact.state === 'jumped') return { state: 'warn', lookedAt, found, remedy };
  return { state: running ? 'ok' : 'unknown', lookedAt, found: `the clock ${found}` };
}
