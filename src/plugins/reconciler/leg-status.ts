import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import { isObject, type JsonObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { LegContext, LegEvent } from '../../machines/reconciler/leg.ts';

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

/** A record of a leg in an operator's words, for `holdfast log`. */
export function describeLegRecord({ event: recorded, to, effects }: LogRecord): string | undefined {
  const event = recorded as unknown as LegEvent | { type: 'init' | 'effect.done' };
  const asks = (type: string) => effects.some((effect) => effect.type === type);
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return '';
    case 'CHANGED':
      return `hears that ${event.intf ?? 'an interface'} was reapplied`;
    case 'RESYNC':
      return `is checked: ${event.reason}`;
    case 'CONFIGURE':
      return `is to have ${event.leg?.address}`;
    case 'RELEASE':
      return 'is no longer listed';
    case 'LEG_READ':
      if (asks('reconciler.leg_recovered')) return `is whole again, seen in ${ncid(event)}`;
      if (asks('reconciler.add_address')) return `lacks its address in ${ncid(event)}, adds it`;
      return to.context?.tries ? `still lacks its address in ${ncid(event)}` : '';
    case 'LEG_ABSENT':
      return `has no interface in ${ncid(event)}`;
    case 'UNREACHABLE':
      return `cannot be read: ${event.reason}`;
    case 'ADDED':
      return `posted ${listed(event.posted, ', ')}: ${ncid(event)}`;
    case 'CONFLICT':
      return 'lost the race for the ncid';
    case 'PENDING':
      return 'waits for a pending transaction';
    case 'REFUSED':
      return `was refused: ${listed(event.errors, '; ')}`;
    case 'UNKNOWN':
      return `does not know whether it was applied: ${event.reason}`;
    case 'effect.failed':
    case 'effect.lost':
      return undefined;
  }
  event satisfies never;
  // A time that elapsed, or an event of a version to come.
  return delayOf(recorded.type) !== undefined ? '' : undefined;
}

// An imported record may hold anything.

function ncid(event: { readonly ncid: string }): string {
  return `ncid ${String(event.ncid).slice(0, 8)}…`;
}

function listed(items: readonly string[], separator: string): string {
  return Array.isArray(items) ? items.join(separator) : '?';
}

/** Whether the running instance holds its legs, for `holdfast doctor router`. */
export function legsCheck({ running }: CheckContext): CheckResult {
  const lookedAt = 'the legs of the running instance';
  const fact = running?.facts.reconciler;
  if (!isObject(fact) || !Array.isArray(fact.legs)) {
    const found = 'none runs that can be asked, so no address is held';
    return { state: 'warn', lookedAt, found, remedy: 'Start it with `holdfast start`.' };
  }
  const ill = fact.legs.filter(({ state }) => state !== 'whole');
  if (ill.length === 0) return { state: 'ok', lookedAt, found: `all ${fact.legs.length} have their address` };
  const found = ill
    .map(
      ({ intf, label, state, lastError }) =>
        `${label} (${intf}) ${state}${lastError ? `: ${lastError}` : ''}`,
    )
    .join('; ');
  const remedy =
    '`holdfast log tail` tells the story of each; router.api and router.transaction say why it may be so.';
  const isWaiting = ill.every(
    ({ state }) => state === 'waiting' || state === 'unread' || state === 'missing',
  );
  return { state: isWaiting ? 'warn' : 'fail', lookedAt, found, remedy };
}
