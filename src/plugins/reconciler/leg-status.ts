import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { leg } from '../../machines/reconciler/leg.ts';
import type { LegContext } from '../../machines/reconciler/leg-shapes.ts';

/** The state of a leg, as health pages name it. */
export type LegState = 'whole' | 'missing' | 'not adopted' | 'waiting' | 'gave up' | 'absent' | 'unread';

/** States that further tries will not end, with a text for each. */
const TROUBLE: Partial<Record<LegState, string>> = {
  absent: 'is not in the config',
  'gave up': 'lacks its address and every try failed',
};

type LegSnapshot = Pick<ActorSnapshot<typeof leg>, 'value' | 'context' | 'at'>;

/** Counts the legs by their state. A leg that was not read yet counts as `unread`. */
export function legsStatus(snapshots: readonly LegSnapshot[]) {
  const legs = snapshots.filter(({ value }) => value !== 'released').map(legStatus);
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

function legStatus({ value, context, at }: LegSnapshot) {
  const { intf, label, address, healed, conflicts, tries, lastError } = context;
  const state = stateOf(String(value), context);
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

/** While it is being read, a leg keeps the state of its last reading. */
export function stateOf(value: string, { missing, lastNcid, observes }: LegContext): LegState {
  if (value === 'gaveUp') return 'gave up';
  if (value === 'waiting' || value === 'absent') return value;
  if (missing) return observes ? 'not adopted' : 'missing';
  return lastNcid === undefined ? 'unread' : 'whole';
}

/** The check of `holdfast doctor router`: whether every leg of the running instance has its address. */
export function legsCheck({ running }: CheckContext): CheckResult {
  const lookedAt = 'the legs of the running instance';
  const fact = running?.facts.reconciler;
  if (!isObject(fact) || !Array.isArray(fact.legs)) {
    const found = 'no instance runs, so no address is kept in place';
    return { state: 'warn', lookedAt, found, remedy: 'Start it with `holdfast start`.' };
  }
  if (fact.legs.length === 0) {
    const remedy = 'Name the legs in the options of the reconciler plugin, or take the plugin out.';
    return { state: 'unknown', lookedAt, found: 'not looked at: it keeps no leg', remedy };
  }
  const unhealthy = fact.legs.filter(({ state }) => state !== 'whole');
  if (unhealthy.length === 0)
    return { state: 'ok', lookedAt, found: `all ${fact.legs.length} have their address` };
  const found = unhealthy
    .map(
      ({ intf, label, state, lastError }) =>
        `${label} (${intf}) ${state}${lastError ? `: ${lastError}` : ''}`,
    )
    .join('; ');
  if (unhealthy.some(({ state }) => state === 'not adopted'))
    return { state: 'fail', lookedAt, found, remedy: 'Confirm the legs with `holdfast router adopt`.' };
  const remedy =
    'Read the records of each leg with `holdfast log tail`, and fix what the checks router.api and router.config report.';
  const isWaiting = unhealthy.every(
    ({ state }) => state === 'waiting' || state === 'unread' || state === 'missing',
  );
  return { state: isWaiting ? 'warn' : 'fail', lookedAt, found, remedy };
}
