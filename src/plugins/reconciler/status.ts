import type { ActorState } from '../../core/kernel/actors/state.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { LegContext } from '../../machines/reconciler/leg-shapes.ts';

/** How a leg is, in the words of health pages. */
export type LegState = 'whole' | 'missing' | 'waiting' | 'gave up' | 'absent' | 'unread';

/** What does not remedy itself within the next tries. */
const TROUBLE: Partial<Record<LegState, string>> = {
  absent: 'is not in the config',
  'gave up': 'lacks its address and every try failed',
};

/** The legs by how they are; a leg that nothing is known of yet counts as `unread`. */
export function legsStatus(states: readonly Readonly<ActorState>[]): JsonObject {
  const legs = states.filter(({ value }) => value !== 'released').map(legStatus);
  const bad = legs.filter(({ state }) => state === 'absent' || state === 'gave up');
  return {
    ...(bad.length > 0 && {
      ok: false,
      reason: bad.map(({ intf, label, state }) => `${intf} (${label}) ${TROUBLE[state] ?? state}`).join(', '),
    }),
    whole: legs.filter(({ state }) => state === 'whole').length,
    of: legs.length,
    legs,
  };
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
