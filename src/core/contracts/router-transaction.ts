import type { ActorState } from '../kernel/actors/state.ts';
import { actorRef } from '../kernel/ids.ts';
import { isObject } from '../kernel/json.ts';
import { delayOf } from '../kernel/log/record.ts';

/** The one actor that decides about the box's config; it holds its transaction, in the log as well as in memory. */
export const CONFIG_ACTOR = actorRef('router.config', 'box');

/** A transaction of the router that is neither committed nor reverted (R40), as health pages and `status` tell it. */
export type RouterTransaction = {
  readonly transID: string;
  /** Who opened it. */
  readonly who: string;
  /** ISO 8601; absent once the window is over and the revert is under way. */
  readonly deadline?: string;
  readonly secondsLeft: number;
  /** Its window is over. */
  readonly reverting?: true;
  /** Its revert failed and is tried again: `reason` says so. */
  readonly ok?: false;
  readonly reason?: string;
};

/**
 * The pending transaction, from the state of `CONFIG_ACTOR`.
 *
 * @param now epoch milliseconds
 * @returns undefined while none is pending
 */
export function routerTransaction(
  state: Readonly<ActorState> | undefined,
  now: number,
): RouterTransaction | undefined {
  const { pending } = isObject(state?.context) ? state.context : {};
  if (!state || !isObject(pending)) return undefined;
  const owner = { transID: String(pending.transID), who: String(pending.who) };
  const window = Object.entries(state.timers).find(([timer]) => delayOf(timer) === 'window')?.[1];
  if (!window) {
    const { work } = isObject(state.value) ? state.value : {};
    const stuck = { ok: false, reason: 'its revert failed and is tried again; the log says why' } as const;
    return { ...owner, reverting: true, secondsLeft: 0, ...(work === 'waiting' && stuck) };
  }
  const secondsLeft = Math.max(0, Math.ceil((window.at - now) / 1_000));
  return { ...owner, deadline: new Date(window.at).toISOString(), secondsLeft };
}
