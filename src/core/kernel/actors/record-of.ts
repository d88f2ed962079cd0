import type { LogEvent, LogRecord, StateValue } from '../log/record.ts';
import type { Writable } from '../writable.ts';
import type { Decision } from './decide.ts';
import type { ActorDefinition } from './definition.ts';

/** A record that has just been made: how it is written is still to be said. */
export type Made = Omit<LogRecord, 'batched'> & { batched?: true };

/** What led to a decision. */
export interface Occasion {
  readonly at: number;
  readonly actor: string;
  readonly event: LogEvent;
  /** Absent for the first record of an actor. */
  readonly from?: StateValue;
  readonly correlation: string;
  readonly cause?: number | undefined;
  readonly outcome?: string | undefined;
}

/** The record of a decision. Set field by field: spreading what may be there takes longer than to decide. */
export function recordOf(
  seq: number,
  { machine: { id }, version }: ActorDefinition,
  { at, actor, event, from, correlation, cause, outcome }: Occasion,
  { to, ignored, stale, failed, effects }: Decision,
): Made {
  const record: Partial<Writable<LogRecord>> = { seq, at, actor, machine: id, version, event };
  if (from !== undefined) record.from = from;
  record.to = to;
  if (ignored) record.ignored = ignored;
  if (stale) record.stale = stale;
  if (failed !== undefined) record.failed = failed;
  record.effects = effects;
  record.correlation = correlation;
  if (cause !== undefined) record.cause = cause;
  if (outcome !== undefined) record.outcome = outcome;
  return record as Made;
}
