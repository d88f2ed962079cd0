import type { ActorState } from '../../core/actors/index.ts';
import type { JsonObject } from '../../core/json.ts';
import type { LegContext } from '../../machines/reconciler/shapes.ts';

/** How a leg is, in the words of health pages. */
export type LegState = 'whole' | 'missing' | 'waiting' | 'gave up' | 'absent' | 'unread';

/** The legs by how they are; a leg that nothing is known of yet counts as `unread`. */
export function legsStatus(states: readonly Readonly<ActorState>[]): JsonObject {
  const legs = states.filter(({ value }) => value !== 'released').map(legStatus);
  return { whole: legs.filter(({ state }) => state === 'whole').length, of: legs.length, legs };
}

function legStatus({ value, context, at }: Readonly<ActorState>) {
  const leg = context as unknown as LegContext;
  const { intf, label, address, healed, conflicts, tries, lastError } = leg;
  const state = stateOf(String(value), leg);
  return {
    intf,
    label,
    address,
    state,
    checkedAt: new Date(at).toISOString(),
    healed,
    conflicts,
    ...(state !== 'whole' && { tries, ...(lastError !== undefined && { lastError }) }),
  };
}

/** While it is being looked at, a leg is what it was when last seen. */
function stateOf(value: string, { missing, lastNcid }: LegContext): LegState {
  if (value === 'gaveUp') return 'gave up';
  if (value === 'waiting' || value === 'absent') return value;
  if (missing) return 'missing';
  return lastNcid === undefined ? 'unread' : 'whole';
}
