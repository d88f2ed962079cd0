import type { Moment } from '../../kernel/actors/recover.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import { diffContext, type Json } from '../../kernel/json.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { delayOf, type StateValue } from '../../kernel/log/record.ts';
import { duration, timestamp } from '../terminal.ts';
import { runSteps } from './pace.ts';
import { shownState } from './shown.ts';

/** A state with the record that entered it, which is absent where that is not in this log any more. */
export interface EnteredState extends ActorState {
  readonly stateSince?: { readonly seq: number; readonly at: number };
}

/** Finds the record by which an actor entered its state. @throws the signal's reason */
export async function enteredState(
  log: HistoryReader,
  state: ActorState,
  signal?: AbortSignal,
): Promise<EnteredState> {
  const seq = await runSteps(log.stateEntered(state.ref, state.seq), signal);
  return { ...state, ...(seq !== undefined && { stateSince: { seq, at: log.record(seq).at } }) };
}

/** How one actor differs between two moments. */
export interface ActorDifference {
  readonly ref: string;
  /** Absent where it did not exist at the earlier one. */
  readonly from?: StateValue;
  readonly to: StateValue;
  /** JSON merge patch of the context; absent where that is the same. */
  readonly context?: Json;
}

/** The actors that changed between two moments, their secrets redacted. */
export function differencesOf(before: Moment, after: Moment): ActorDifference[] {
  const then = new Map(before.actors.map((state) => [state.ref, state]));
  return after.actors.flatMap((state) => {
    const old = then.get(state.ref);
    if (old?.seq === state.seq) return [];
    const context = diffContext(old && shownState(old).context, shownState(state).context);
    return [
      { ref: state.ref, ...(old && { from: old.value }), to: state.value, ...(context && { context }) },
    ];
  });
}

/** What an actor waits for, a sentence each. @param now epoch milliseconds */
export function waits({ timers, effects }: ActorState, now: number): string[] {
  return [
    ...Object.entries(timers).map(([name, { at }]) => {
      const left = at > now ? `in ${duration(at - now)}` : 'due';
      return `timer ${delayOf(name) ?? name} expires at ${timestamp(at)}, ${left}`;
    }),
    ...Object.entries(effects).map(([id, { type }]) => `waits for the outcome of ${type} (${id})`),
  ];
}
