import type { AnyMachineSnapshot } from 'xstate';
import { diffContext, toPlain } from '../json.ts';
import {
  type EffectRequest,
  INIT,
  LATEST,
  type LogEvent,
  type LogRecord,
  type StateValue,
  type Target,
  TIMER_CANCEL,
  TIMER_START,
} from '../log/record.ts';
import type { Writable } from '../writable.ts';
import type { ActorDefinition } from './definition.ts';
import { type ActorState, awaits } from './state.ts';
import type { MachineStepper, Step } from './xstate.ts';

/** The part of a record that the machine alone determines: replay computes it again and compares. */
export type Decision = Pick<LogRecord, 'to' | 'effects'> &
  Partial<Pick<LogRecord, 'ignored' | 'stale' | 'failed'>>;

export interface Decided {
  readonly decision: Decision;
  /** XState's snapshot after the event. */
  readonly snapshot: AnyMachineSnapshot;
}

/** The first decision of an actor. @param at epoch milliseconds of the record, from which timers count */
export function decideInit(stepper: MachineStepper, event: LogEvent, at: number): Decided {
  const step = stepper.initial(event.input);
  return { decision: fromStep(step, {}, {}, at), snapshot: step.snapshot };
}

/**
 * What an event does to an actor. Total: a machine that throws decides `failed` and stays as it was.
 *
 * @param state what the log says of the actor so far
 * @param snapshot the same as XState has it
 * @param outcome the effect or timer that the event answers, if it is an outcome
 */
export function decide(
  stepper: MachineStepper,
  state: ActorState,
  snapshot: AnyMachineSnapshot,
  event: LogEvent,
  at: number,
  outcome?: string,
): Decided {
  const unchanged = state.done ? ({ value: state.value, done: true } as const) : { value: state.value };
  if (outcome !== undefined && !awaits(state, outcome, event.type)) {
    return { decision: { to: unchanged, ignored: true, stale: true, effects: [] }, snapshot };
  }
  if (state.done || event.type === INIT) {
    return { decision: { to: unchanged, ignored: true, effects: [] }, snapshot };
  }
  try {
    const step = stepper.next(snapshot, event);
    const fired = outcome !== undefined && state.timers[event.type]?.id === outcome ? event.type : undefined;
    return { decision: fromStep(step, snapshot.context, state.timers, at, fired), snapshot: step.snapshot };
  } catch (error) {
    const failed = error instanceof Error ? error.message : String(error);
    return { decision: { to: unchanged, failed, effects: [] }, snapshot };
  }
}

function fromStep(
  step: Step,
  before: unknown,
  armed: ActorState['timers'],
  at: number,
  fired?: string,
): Decision {
  const context = diffContext(before, step.context);
  const to: Writable<Target> = { value: step.value };
  if (context) to.context = context;
  if (step.done) to.done = true;
  const effects = recordedEffects(step.effects, armed, at, fired);
  return step.ignored ? { to, ignored: true, effects } : { to, effects };
}

/**
 * Delays become deadlines; a cancel is kept only where something is armed (XState cancels on every exit, also of
 * the timer that caused it).
 */
function recordedEffects(
  effects: readonly EffectRequest[],
  armed: ActorState['timers'],
  at: number,
  fired?: string,
): EffectRequest[] {
  let open: Set<string> | undefined;
  const recorded: EffectRequest[] = [];
  for (const effect of effects) {
    const { type, params } = effect;
    if (type !== TIMER_START && type !== TIMER_CANCEL) {
      recorded.push(params === undefined ? effect : { type, params: toPlain(params, type) });
      continue;
    }
    const { timer, delayMs } = params as { timer: string; delayMs: number };
    open ??= new Set(Object.keys(armed).filter((name) => name !== fired));
    if (type === TIMER_START) {
      open.add(timer);
      recorded.push({ type, params: { timer, at: Math.min(at + delayMs, LATEST) } });
    } else if (open.delete(timer)) recorded.push(effect);
  }
  return recorded;
}

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
