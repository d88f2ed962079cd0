import type { PageMoment } from '../../contracts/console.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import { jumpsOf, timeByPresentClock, timeLeft } from '../../kernel/clock-jumps.ts';
import { effectId, parseActorRef, seqOfEffect } from '../../kernel/ids.ts';
import { isObject } from '../../kernel/json.ts';
import { CLOCK, delayOf, type LogRecord } from '../../kernel/log/record.ts';

// What pages of plugins read of a moment. Nothing here needs a running plugin: pages are drawn of any log.

/** The actors of a type at a moment. @param type of an actor, without a key */
export function statesOf({ states }: Pick<PageMoment, 'states'>, type: string): Readonly<ActorState>[] {
  return [...states.values()].filter(({ ref }) => parseActorRef(ref).type === type);
}

/** The key of an actor: what follows its type. */
export const keyOf = ({ ref }: Pick<ActorState, 'ref'>): string => parseActorRef(ref).key;

/**
 * What an actor remembers. Its machine declares the type, which the caller names; empty where it remembers nothing. Name it
 * `Partial` where an older record may lack a field.
 */
export function contextOf<C extends object>({ context }: Pick<ActorState, 'context'>): C {
  const remembered: object = isObject(context) ? context : {};
  return remembered as C;
}

/**
 * When a timer of an actor fires, by the clock as it is set at the moment.
 *
 * @param delay the machine's name for it
 * @returns epoch milliseconds; undefined while it is not armed
 */
export function dueOf(
  { states, time }: Pick<PageMoment, 'states' | 'time'>,
  { timers }: Pick<ActorState, 'timers'>,
  delay: string,
): number | undefined {
  const timer = Object.entries(timers).find(([name]) => delayOf(name) === delay)?.[1];
  if (!timer) return undefined;
  const jumps = jumpsOf(states.get(CLOCK.actor));
  const left = timeLeft(timer, time, jumps);
  if (left > 0) return time + left;
  return Math.min(time, timeByPresentClock(timer.at, seqOfEffect(timer.id), jumps));
}

/** The parameters of effects of a type that records requested, each with its record, by the effect's id. */
export function requestedEffects(
  records: readonly LogRecord[],
  type: string,
): ReadonlyMap<string, { readonly record: LogRecord; readonly params: unknown }> {
  return new Map(
    records.flatMap((record) =>
      record.effects.flatMap((effect, index) =>
        effect.type === type
          ? [[effectId(record.seq, index), { record, params: effect.params }] as const]
          : [],
      ),
    ),
  );
}
