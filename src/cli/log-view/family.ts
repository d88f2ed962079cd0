import { effectId } from '../../core/kernel/ids.ts';
import {
  type EffectRequest,
  type LogRecord,
  TIMER_CANCEL,
  TIMER_START,
  type TimerStart,
} from '../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

/** How an effect or timer that a record asked for ended. */
export type Fate =
  | { readonly kind: 'outcome'; readonly record: LogRecord }
  | { readonly kind: 'cancelled'; readonly record: LogRecord }
  | { readonly kind: 'open' }
  /** It takes effect by itself and has no outcome: a timer's cancel. */
  | { readonly kind: 'done' };

export interface Asked {
  readonly id: string;
  readonly effect: EffectRequest;
  readonly fate: Fate;
}

/** A record, what led to it, and what it led to. */
export interface Family {
  readonly record: LogRecord;
  readonly cause: LogRecord | undefined;
  readonly asked: readonly Asked[];
  /** Records of its story that name it as their cause, outcomes among them. */
  readonly children: readonly LogRecord[];
}

/**
 * @param most records that are looked through for what came of it: a viewer must not wait for a story without end
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export async function familyOf(
  log: SqliteReader,
  seq: number,
  most = Number.POSITIVE_INFINITY,
): Promise<Family> {
  const record = log.record(seq);
  const cause =
    record.cause !== undefined && record.cause >= log.firstSeq() ? log.record(record.cause) : undefined;
  const children: LogRecord[] = [];
  for await (const later of log.read({ from: seq + 1, correlation: record.correlation, limit: most })) {
    if (later.cause === seq) children.push(later);
  }
  const asked: Asked[] = [];
  for (const [index, effect] of record.effects.entries()) {
    const id = effectId(seq, index);
    const outcome = children.find((child) => child.outcome === id && !child.stale);
    const fate: Fate = outcome
      ? { kind: 'outcome', record: outcome }
      : await fateWithout(log, record, effect, most);
    asked.push({ id, effect, fate });
  }
  return { record, cause, asked, children };
}

/** What became of an effect that has no outcome. */
async function fateWithout(
  log: SqliteReader,
  { seq, actor }: LogRecord,
  { type, params }: EffectRequest,
  most: number,
): Promise<Fate> {
  if (type === TIMER_CANCEL) return { kind: 'done' };
  if (type !== TIMER_START) return { kind: 'open' };
  const { timer } = params as unknown as TimerStart;
  for await (const record of log.read({ from: seq + 1, actor, limit: most })) {
    const ends = record.effects.some(
      (effect) =>
        (effect.type === TIMER_CANCEL || effect.type === TIMER_START) &&
        (effect.params as { timer: string }).timer === timer,
    );
    if (ends) return { kind: 'cancelled', record };
  }
  return { kind: 'open' };
}
