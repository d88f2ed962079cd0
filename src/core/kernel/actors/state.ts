import { effectId } from '../ids.ts';
import { applyMergePatch, type Json } from '../json.ts';
import {
  type EffectRequest,
  INIT,
  type LogRecord,
  type StateValue,
  TIMER_CANCEL,
  TIMER_START,
  timerCancelled,
  timerStarted,
} from '../log/record.ts';

/** A timer that is armed: the record and place that armed it, and when it fires (epoch milliseconds). */
export interface OpenTimer {
  readonly id: string;
  readonly at: number;
  /** When it was armed, epoch milliseconds. */
  readonly armedAt: number;
  /** The story that armed it. */
  readonly correlation: string;
}

/** An effect that was asked for and has no outcome yet. */
export interface OpenEffect extends EffectRequest {
  /** When it was asked for, epoch milliseconds. */
  readonly at: number;
  readonly correlation: string;
}

/**
 * Everything the log says of one actor up to a record: what recovery, replay and snapshots share. Plain data,
 * changed in place by `applyRecord` alone.
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
  if (record.outcome) closeOutcome(next, record.outcome);
  record.effects.forEach((effect, index) => {
    openEffect(next, effect, effectId(record.seq, index), record);
  });
  return next;
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
