import type { ActorState } from '../../core/actors/index.ts';
import type { Json } from '../../core/json.ts';
import type { TransactionContext } from '../../machines/config-transaction/shapes.ts';

/**
 * The pending transaction for health pages and `holdfast status` (R40).
 *
 * @param now epoch milliseconds
 * @returns undefined while none is pending
 */
export function transactionStatus(state: Readonly<ActorState> | undefined, now: number): Json | undefined {
  const { pending } = (state?.context ?? {}) as Partial<TransactionContext>;
  if (!state || !pending) return undefined;
  const { transID, who } = pending;
  const window = Object.entries(state.timers).find(([name]) => name.includes('.window.'))?.[1];
  if (!window) {
    const { work } = state.value as { work?: unknown };
    const stuck = { ok: false, reason: 'its revert failed and is tried again; the log says why' };
    return { transID, who, reverting: true, secondsLeft: 0, ...(work === 'waiting' && stuck) };
  }
  const secondsLeft = Math.max(0, Math.ceil((window.at - now) / 1000));
  return { transID, who, deadline: new Date(window.at).toISOString(), secondsLeft };
}
