import type { AnyMachineSnapshot, AnyStateMachine, ContextFrom, SnapshotFrom } from 'xstate';
import { type ActorRef, effectId, parseActorRef } from '../ids.ts';
import { applyMergePatch, diffContext, type Json, toPlain } from '../json.ts';
import {
  ADOPT,
  type EffectRequest,
  INIT,
  LATEST,
  type LogEvent,
  type LogRecord,
  type Origin,
  type StateValue,
  type Target,
  TIMER_CANCEL,
  TIMER_START,
  timerCancelled,
  timerStarted,
} from '../log/record.ts';
import type { ActorDefinition } from './definition.ts';
import { type TakeoverMark, takeoverMarkOf } from './takeover-mark.ts';
import type { MachineStepper, Step } from './xstate.ts';

// One transition of an actor, without any I/O: what its machine decides on an event, the record of it, and what the
// record makes of the actor's state. The running system, recovery and replay share it.

/** For an object that is filled field by field. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A timer that is armed: the record and place that armed it, and when it fires (epoch milliseconds). */
export interface OpenTimer {
  readonly id: string;
  readonly at: number;
  /** When it was armed, epoch milliseconds. */
  readonly armedAt: number;
  /** The correlation id of the record that armed it. */
  readonly correlation: string;
}

/** An effect that was requested and has no outcome yet. */
export interface OpenEffect extends EffectRequest {
  /** When it was requested, epoch milliseconds. */
  readonly at: number;
  readonly correlation: string;
}

/**
 * Everything the log says of one actor up to a record: what recovery, replay and snapshots share. Plain data,
 * changed in place by `applyRecord` alone.
 *
 * @public
 */
export interface ActorState {
  readonly ref: string;
  machine: string;
  version: number;
  value: StateValue;
  context: Json;
  done: boolean;
  /** The newest record of this actor, and its time. */
  seq: number;
  at: number;
  /** Armed timers by the machine's name for them. */
  timers: Record<string, OpenTimer>;
  /** Open effects by `<seq>.<index>`. */
  effects: Record<string, OpenEffect>;
  /** From which host the state was taken over last; absent for one that was always here. */
  adopted?: TakeoverMark;
}

/**
 * Folds one record into the state of its actor.
 *
 * @param state of the same actor, or undefined for its `init` record
 * @returns the same object, changed; a new one for `init`
 */
export function applyRecord(state: ActorState | undefined, record: LogRecord): ActorState {
  const next: ActorState =
    state && !(record.event.type === INIT && record.from === undefined)
      ? state
      : {
          ref: record.actor,
          machine: '',
          version: 0,
          value: '',
          context: {},
          done: false,
          seq: 0,
          at: 0,
          timers: {},
          effects: {},
        };
  next.machine = record.machine;
  next.version = record.version;
  next.value = record.to.value;
  if (record.to.context) next.context = applyMergePatch(next.context, record.to.context);
  next.done = record.to.done === true;
  next.seq = record.seq;
  next.at = record.at;
  if (record.event.type === ADOPT) adopt(next, record);
  if (record.outcome) closeOutcome(next, record.outcome);
  record.effects.forEach((effect, index) => {
    openEffect(next, effect, effectId(record.seq, index), record);
  });
  return next;
}

/** What was open before an adoption is not any more: its record asks again for what the other host left open. */
function adopt(state: ActorState, record: LogRecord): void {
  const adopted = takeoverMarkOf(record);
  if (!adopted) return;
  state.timers = {};
  state.effects = {};
  state.adopted = adopted;
}

/** @returns whether the actor still waits for this outcome: an open effect, or the armed timer of that name */
export function awaits(state: ActorState, outcome: string, eventType: string): boolean {
  return state.effects[outcome] !== undefined || state.timers[eventType]?.id === outcome;
}

function closeOutcome(state: ActorState, outcome: string): void {
  if (state.effects[outcome]) {
    delete state.effects[outcome];
    return;
  }
  for (const [name, timer] of Object.entries(state.timers))
    if (timer.id === outcome) delete state.timers[name];
}

function openEffect(state: ActorState, effect: EffectRequest, id: string, record: LogRecord): void {
  if (effect.type === TIMER_START) {
    const { timer, at } = timerStarted(effect);
    state.timers[timer] = { id, at, armedAt: record.at, correlation: record.correlation };
  } else if (effect.type === TIMER_CANCEL) {
    delete state.timers[timerCancelled(effect)];
  } else {
    state.effects[id] = { ...effect, at: record.at, correlation: record.correlation };
  }
}

/** An actor between two events, in the types of its machine. @public */
export interface ActorSnapshot<M extends AnyStateMachine = AnyStateMachine> {
  readonly ref: ActorRef;
  readonly key: string;
  readonly value: SnapshotFrom<M>['value'];
  readonly context: ContextFrom<M>;
  /** The machine reached a final state. */
  readonly done: boolean;
  /** The actor's newest record, and its time in epoch milliseconds. */
  readonly seq: number;
  readonly at: number;
  /** Armed timers by the machine's name for them. */
  readonly timers: Readonly<Record<string, OpenTimer>>;
  /** Effects without an outcome yet, by `<seq>.<index>`. */
  readonly effects: Readonly<Record<string, OpenEffect>>;
}

/** The state of an actor in the types of its machine, whose events and assigns made it. */
export function snapshotOf<M extends AnyStateMachine>(
  _machine: M,
  { ref, value, context, done, seq, at, timers, effects }: Readonly<ActorState>,
): ActorSnapshot<M> {
  return {
    ref: ref as ActorRef,
    key: parseActorRef(ref).key,
    value: value as SnapshotFrom<M>['value'],
    context: context as ContextFrom<M>,
    done,
    seq,
    at,
    timers,
    effects,
  };
}

/** The part of a record that only the machine determines; replay computes it again and compares. */
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
 * What an event does to an actor. It never throws: when the machine throws, the decision is `failed` and the state stays.
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
 * Delays become deadlines. A cancel is kept only when the timer is armed: XState cancels on every exit, also the timer
 * that caused it.
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

/** What led to a decision. */
export interface Occasion {
  readonly at: number;
  readonly actor: string;
  readonly event: LogEvent;
  /** Absent for the first record of an actor. */
  readonly from?: StateValue;
  readonly correlation: string;
  readonly uid?: LogRecord['uid'];
  readonly cause?: number | undefined;
  readonly origin?: Origin | undefined;
  readonly outcome?: string | undefined;
}

/**
 * The record of a decision. It is filled field by field: spreading optional fields takes longer than the decision. Whether
 * it is batched is decided from the rest of it.
 */
export function recordOf(
  seq: number,
  { machine: { id }, version, durability }: Pick<ActorDefinition, 'machine' | 'version' | 'durability'>,
  { at, actor, event, from, correlation, uid, cause, origin, outcome }: Occasion,
  { to, ignored, stale, failed, effects }: Decision,
): LogRecord {
  const record: Partial<Writable<LogRecord>> = { seq, at, actor, machine: id, version, event };
  if (from !== undefined) record.from = from;
  record.to = to;
  if (ignored) record.ignored = ignored;
  if (stale) record.stale = stale;
  if (failed !== undefined) record.failed = failed;
  record.effects = effects;
  record.correlation = correlation;
  if (uid !== undefined) record.uid = uid;
  if (cause !== undefined) record.cause = cause;
  if (origin !== undefined) record.origin = origin;
  if (outcome !== undefined) record.outcome = outcome;
  const whole = record as Writable<LogRecord>;
  if (isBatched(whole, durability)) whole.batched = true;
  return whole;
}

/** False when the definition's function throws: the record's seq is taken already, and `sync` is always safe. */
function isBatched(record: LogRecord, durability: ActorDefinition['durability']): boolean {
  if (typeof durability !== 'function') return durability === 'batched';
  try {
    return durability(record) === 'batched';
  } catch {
    return false;
  }
}
