import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { leg } from '../../machines/reconciler/leg.ts';
import type { LegContext } from '../../machines/reconciler/leg-shapes.ts';

/**
 * The state of a leg, as health pages name it. `whole` is only said of a leg whose link was seen to have the address;
 * `configured` is one whose config has it, and whose link was not or could not be looked at.
 */
export type LegState =
  | 'whole'
  | 'configured'
  | 'configured, not applied'
  | 'missing'
  | 'not adopted'
  | 'waiting'
  | 'gave up'
  | 'unreachable'
  | 'refused'
  | 'refused by name'
  | 'absent'
  | 'unread';

/** States that are a fault, with a text for each. */
const TROUBLE: Partial<Record<LegState, string>> = {
  absent: 'is not in the config',
  'gave up': 'lacks its address and lost every race for the config',
  unreachable: 'cannot be read',
  refused: 'lacks its address and the router does not take the write',
  'refused by name': 'has the name of a network that is never touched',
  'configured, not applied':
    'has its address in the config and not on the link: have the router apply that network again',
};

/** The same of a kept field, where it differs. */
const FIELD_TROUBLE: Partial<Record<LegState, string>> = {
  absent: 'has no place in the config',
  'gave up': 'lacks its value and lost every race for the config',
  refused: 'lacks its value and the router does not take the write',
  'refused by name': 'may not be held',
};

type LegSnapshot = Pick<ActorSnapshot<typeof leg>, 'value' | 'context' | 'at'>;

/** Counts the legs by their state: those that are whole, and those whose link is not known to have what the config has. */
export function legsStatus(snapshots: readonly LegSnapshot[]) {
  const legs = snapshots.filter(({ value }) => value !== 'released').map(legStatus);
  const bad = legs.filter(({ state }) => TROUBLE[state] !== undefined);
  return {
    ...(bad.length > 0 && {
      ok: false,
      reason: bad.map(troubleText).join(', '),
    }),
    text: statusText(legs),
    whole: countOf('whole', legs),
    configured: countOf('configured', legs),
    of: legs.length,
    legs,
  };
}

type LegStatus = ReturnType<typeof legStatus>;

const countOf = (wanted: LegState, legs: readonly LegStatus[]) =>
  legs.filter(({ state }) => state === wanted).length;

function troubleText({ intf, label, state, match }: LegStatus): string {
  const text = (match && FIELD_TROUBLE[state]) ?? TROUBLE[state] ?? state;
  return `${label === intf ? intf : `${intf} (${label})`} ${text}`;
}

/** For `holdfast status`: how many are whole, and how each of the others is. */
function statusText(legs: readonly LegStatus[]): string {
  const others = legs.filter(({ state }) => state !== 'whole').map(legText);
  const [addresses, fields] = [legs.filter(({ match }) => !match), legs.filter(({ match }) => match)];
  return [
    `${countOf('whole', addresses)} of ${addresses.length} legs whole`,
    ...(fields.length > 0 ? [`${countOf('whole', fields)} of ${fields.length} kept fields whole`] : []),
    ...others,
  ].join('; ');
}

/** One leg, as health pages show it. */
export function legStatus({ value, context, at }: LegSnapshot) {
  const { intf, label, address, keep, healed, conflicts, tries, failures, lastError, link, refusedName } =
    context;
  const state = stateOf(String(value), context);
  const since =
    state === 'configured, not applied' && link?.state === 'missing'
      ? link.since
      : troubleSince(state, context);
  return {
    intf,
    label,
    address,
    ...(keep && { match: keep.match }),
    state,
    checkedAt: new Date(at).toISOString(),
    healed,
    conflicts,
    ...(!keep && { link: link?.state ?? 'unknown' }),
    ...(link?.state === 'unknown' && { linkReason: link.reason }),
    ...(since !== undefined && { since: new Date(since).toISOString() }),
    ...(state === 'refused by name' && refusedName !== undefined && { name: refusedName }),
    ...(state !== 'whole' && { tries: tries + failures, ...(lastError !== undefined && { lastError }) }),
  };
}

/** Since when it is as it is, epoch milliseconds, where that is known. */
function troubleSince(state: LegState, { trouble, missingSince }: LegContext): number | undefined {
  if (state === 'unreachable' || state === 'refused') return trouble?.since;
  return state === 'missing' || state === 'gave up' || state === 'waiting' ? missingSince : undefined;
}

/** While it is being read, a leg keeps the state of its last reading. */
export function stateOf(value: string, context: LegContext): LegState {
  const { keep, missing, lastNcid, trouble, refusedName, link, linkAlerted, observes } = context;
  if (value === 'gaveUp') return 'gave up';
  if (value === 'waiting' || value === 'absent') return value;
  if (refusedName !== undefined) return 'refused by name';
  if (trouble) return trouble.kind;
  if (missing) return observes ? 'not adopted' : 'missing';
  if (lastNcid === undefined) return 'unread';
  if (keep) return 'whole';
  if (link?.state === 'present') return 'whole';
  return linkAlerted === true && link?.state === 'missing' ? 'configured, not applied' : 'configured';
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
  const legs = fact.legs.filter(isObject);
  const unhealthy = legs.filter(({ state }) => state !== 'whole');
  if (unhealthy.length === 0)
    return {
      state: 'ok',
      lookedAt,
      found: wholeText(legs),
    };
  const found = unhealthy.map(legText).join('; ');
  const states = new Set(unhealthy.map(({ state }) => state));
  if (states.has('not adopted'))
    return { state: 'fail', lookedAt, found, remedy: 'Confirm the legs with `holdfast router adopt`.' };
  const remedy = states.has('configured, not applied') ? REAPPLY : READ_RECORDS;
  if (states.size === 1 && states.has('configured')) return { state: 'unknown', lookedAt, found, remedy };
  const isWaiting = [...states].every((state) => WAITING.includes(String(state)));
  return { state: isWaiting ? 'warn' : 'fail', lookedAt, found, remedy };
}

function wholeText(legs: readonly Record<string, unknown>[]): string {
  const fields = legs.filter(({ match }) => match !== undefined).length;
  const found = `all ${legs.length - fields} have their address, in the config and on the link`;
  return fields === 0 ? found : `${found}; all ${fields} kept fields have their value in the config`;
}

/** States that end without a person. */
const WAITING: readonly string[] = ['waiting', 'unread', 'missing', 'configured'];
const READ_RECORDS =
  'Read the records of each leg with `holdfast log tail`, and fix what the checks router.api and router.config report.';
const REAPPLY =
  'Have the router apply that network again: `holdfast drill app-save --leg <interface>` saves it without its address, which ' +
  'Holdfast adds again. If that does not help, read the log of the router: its kernel still refuses the address.';

function legText(leg: Record<string, unknown>): string {
  return `${String(leg.label)} (${String(leg.intf)}) ${stateText(leg)}`;
}

/** The state of a leg with its reasons. @param leg as `legStatus` describes it */
export function stateText(leg: Record<string, unknown>): string {
  const { state, since, name, lastError, linkReason, match } = leg;
  const details = [
    state === 'configured' &&
      `its link is unknown${linkReason === undefined ? '' : `: ${String(linkReason)}`}`,
    name !== undefined && (match === undefined ? `its name is ${String(name)}` : String(name)),
    since !== undefined && `since ${String(since)}`,
    lastError !== undefined && String(lastError),
  ].filter((detail) => detail !== false);
  return [String(state), ...details].join(', ');
}
