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
  // Without the timer the window has run out and the revert is under way, or tried again.
  if (!window) return { transID, who, reverting: true, secondsLeft: 0 };
  const secondsLeft = Math.max(0, Math.ceil((window.at - now) / 1000));
  return { transID, who, deadline: new Date(window.at).toISOString(), secondsLeft };
}
