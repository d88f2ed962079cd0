import type { ActorState, OpenTimer } from './actors/transition.ts';
import { seqOfEffect } from './ids.ts';
import { isObject } from './json.ts';

// The wall clock can be set; the time that passes cannot. Records carry the wall clock as it was, and the records of one
// actor say by how much it was set, and when: with both, every duration can be computed.

/** Steps up to this are what a time service makes of an hour; milliseconds. */
export const JUMP_MS = 2_000;

/** The wall clock was set. */
export interface ClockJump {
  /** The newest record that was made before. */
  readonly after: number;
  /** By how much it was set ahead, milliseconds; negative for back. */
  readonly byMs: number;
}

/** The jumps that an actor's state remembers, oldest first. @param state of `CLOCK.actor`; none when there is none */
export function jumpsOf(state: Readonly<ActorState> | undefined): readonly ClockJump[] {
  const { jumps } = isObject(state?.context) ? state.context : {};
  if (!Array.isArray(jumps)) return [];
  return jumps.flatMap((jump) => {
    const { after, byMs } = isObject(jump) ? jump : {};
    return typeof after === 'number' && typeof byMs === 'number' ? [{ after, byMs }] : [];
  });
}

/**
 * The time of a record by the clock as it is set now.
 *
 * @param at epoch milliseconds, as the record has it
 */
export function timeByPresentClock(at: number, seq: number, jumps: readonly ClockJump[]): number {
  let time = at;
  for (const { after, byMs } of jumps) if (after >= seq) time += byMs;
  return time;
}

/**
 * How long a timer still has, by the time that passed since it was armed and not by its deadline on the wall clock.
 *
 * @param now epoch milliseconds
 * @returns milliseconds, from 0 to its whole delay
 */
export function timeLeft({ id, at, armedAt }: OpenTimer, now: number, jumps: readonly ClockJump[]): number {
  const passed = now - timeByPresentClock(armedAt, seqOfEffect(id), jumps);
  return Math.max(0, at - armedAt - Math.max(0, passed));
}
