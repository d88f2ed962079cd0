import { effectId } from '../../kernel/ids.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import {
  type EffectRequest,
  type LogRecord,
  TIMER_CANCEL,
  timerOf,
  timerStartOf,
} from '../../kernel/log/record.ts';
import { type Since, sinceSteps } from '../../kernel/replay/since.ts';
import { Pace, runSteps } from './pace.ts';

/** How an effect or timer that a record requested ended. */
export type Fate =
  | { readonly kind: 'outcome'; readonly record: LogRecord }
  | { readonly kind: 'cancelled'; readonly record: LogRecord }
  | { readonly kind: 'open' }
  /** It needs no outcome: the cancellation of a timer. */
  | { readonly kind: 'done' };

export interface RequestedEffect {
  readonly id: string;
  readonly effect: EffectRequest;
  readonly fate: Fate;
}

/** A record with its cause and its consequences. */
export interface Family {
  readonly record: LogRecord;
  readonly cause: LogRecord | undefined;
  /** Absent for an actor's first record. */
  readonly since: Since | undefined;
  readonly effects: readonly RequestedEffect[];
  /** Records of the same story that name it as their cause, outcomes included. */
  readonly children: readonly LogRecord[];
}

/**
 * @param most how many later records are searched for outcomes, so that a viewer need not wait for a long story
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export async function familyOf(
  log: HistoryReader,
  seq: number,
  most = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): Promise<Family> {
  const record = log.record(seq);
  const cause =
    record.cause !== undefined && record.cause >= log.firstSeq() ? log.record(record.cause) : undefined;
  const children: LogRecord[] = [];
  const pace = new Pace(signal);
  for await (const later of log.read({ from: seq + 1, correlation: record.correlation, limit: most })) {
    if (later.cause === seq) children.push(later);
    await pace.next();
  }
  const effects: RequestedEffect[] = [];
  for (const [index, effect] of record.effects.entries()) {
    const id = effectId(seq, index);
    const outcome = children.find((child) => child.outcome === id && !child.stale);
    const fate: Fate = outcome
      ? { kind: 'outcome', record: outcome }
      : await fateWithout(log, record, effect, { most, pace });
    effects.push({ id, effect, fate });
  }
  const since = await runSteps(sinceSteps(log, record), signal);
  return { record, cause, since, effects, children };
}

/** The fate of an effect without an outcome. */
async function fateWithout(
  log: HistoryReader,
  { seq, actor }: LogRecord,
  effect: EffectRequest,
  { most, pace }: { readonly most: number; readonly pace: Pace },
): Promise<Fate> {
  if (effect.type === TIMER_CANCEL) return { kind: 'done' };
  const timer = timerStartOf(effect)?.timer;
  if (timer === undefined) return { kind: 'open' };
  for await (const record of log.read({ from: seq + 1, actor, limit: most })) {
    if (record.effects.some((each) => timerOf(each) === timer)) return { kind: 'cancelled', record };
    await pace.next();
  }
  return { kind: 'open' };
}
