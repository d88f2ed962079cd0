import type { Alert } from '../effect.ts';
import type { Args, LegContext, LegEvent, LegRecovered, LegSettings, ReadLeg } from './leg-shapes.ts';

/** Why a try failed, as text for the alert. */
export function reasonOf(event: LegEvent): string | undefined {
  switch (event.type) {
    case 'CONFLICT':
      return 'another writer saved in between';
    case 'REFUSED':
      return event.errors.join('; ');
    case 'UNKNOWN':
    case 'UNREACHABLE':
    case 'LINK_UNKNOWN':
      return event.reason;
    case 'effect.failed':
      return event.message;
    case 'effect.lost':
      return 'the process ended before the router answered';
    case 'LEG_READ':
      return 'the router accepted the write, but the address is still missing';
    default:
      return undefined;
  }
}

export const jitterOf = (event: LegEvent) => ('jitter' in event ? event.jitter : undefined);

/** So many tries follow one another after the base of a back-off; then it is doubled after each so many. */
const STEADY_TRIES = 6;
/** Enough to reach every limit, and no number that is too large. */
const MAX_DOUBLINGS = 20;

const doubled = (baseMs: number, times: number) => baseMs * 2 ** Math.min(Math.floor(times), MAX_DOUBLINGS);

export const slowlyDoubled = (baseMs: number, tries: number) => doubled(baseMs, tries / STEADY_TRIES);

/**
 * The back-off of the next try, milliseconds: short and jittered after a lost race or a write that another one overtook,
 * longer for a router that gives no answer or does not take the write. So a short fault is found over soon after its end,
 * and a long one costs the router one call a minute.
 */
export function pauseAfter(event: LegEvent, context: LegContext): number {
  const { retryMs, backOffMs, backOffLimitMs, tries, failures } = context;
  const jitter = jitterOf(event) ?? context.jitter;
  if (event.type === 'CONFLICT') return Math.round(retryMs * 2 ** tries * (0.5 + jitter));
  const wasAccepted = event.type === 'LEG_READ' && context.lastError === undefined;
  const pauseMs = wasAccepted
    ? doubled(retryMs, failures) * (0.5 + jitter)
    : slowlyDoubled(backOffMs, failures) * (0.75 + jitter / 2);
  return Math.round(Math.min(pauseMs, backOffLimitMs));
}

export const ncidOf = (event: LegEvent) => ('ncid' in event ? event.ncid : undefined);

/** The router took the write, and somebody saved a config without the address since: no refusal, and no stale reading. */
export const droppedSince = ({ addedNcid, lastNcid }: LegContext, event: LegEvent) =>
  event.type === 'LEG_READ' && addedNcid !== undefined && ![addedNcid, lastNcid].includes(event.ncid);

export const publishedAt = (event: LegEvent) => (event.type === 'CHANGED' ? event.at : undefined);

export const readAt = (event: LegEvent) => ('at' in event ? event.at : undefined);

export const labelsOf = ({ intf, label, address }: LegSettings) => ({ intf, label, address });

const isMissing = (context: LegContext) => context.missing === true;

export function gaveUp(context: LegContext): Alert {
  const { intf, label, address, tries, lastError } = context;
  const what = isMissing(context) ? `lacks ${address}` : 'cannot be checked';
  return {
    name: 'reconciler.leg.gave_up',
    severity: 'critical',
    text: `${label} (${intf}) ${what} after ${tries} tries: ${lastError}. Holdfast tries again at the next event or resync.`,
    labels: labelsOf(context),
  };
}

export function writeRefused(context: LegContext): Alert {
  const { intf, label, address, alertAfterMs, backOffLimitMs, lastError } = context;
  return {
    name: 'reconciler.leg.write_refused',
    severity: 'critical',
    text:
      `${label} (${intf}) has lacked ${address} for more than ${seconds(alertAfterMs)}: the router does not take the write ` +
      `(${lastError}). Holdfast keeps trying, at least every ${seconds(backOffLimitMs)}.`,
    labels: labelsOf(context),
  };
}

export function refusedByName(context: LegContext, name: string): Alert {
  const { intf, label, address, keep } = context;
  if (keep)
    return {
      name: 'reconciler.leg.refused_by_name',
      severity: 'critical',
      text: `${label} (${intf}) is not held to ${address}: ${name}. Take the field off the list.`,
      labels: labelsOf(context),
    };
  return {
    name: 'reconciler.leg.refused_by_name',
    severity: 'critical',
    text:
      `${label} (${intf}) is named ${name} in the router's config, and that network is never touched: ${address} is not ` +
      'added. Take the leg off the list, or give the network another name.',
    labels: labelsOf(context),
  };
}

/** What is read for a leg: its interface, or the field that is kept. */
export function readingOf({ context: { intf, keep } }: Pick<Args, 'context'>): ReadLeg {
  return { intf, ...(keep && { keep }) };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

export function vanished(context: LegContext): Alert {
  const { intf, label, keep } = context;
  return {
    name: 'reconciler.leg.leg_absent',
    severity: 'warning',
    text: keep
      ? `The router's config has no object for ${intf} (${label}): so ${context.address} cannot be put there.`
      : `The router's config has no interface ${intf} (${label}): so ${context.address} cannot be added.`,
    labels: labelsOf(context),
  };
}

export function recovery({ context, event }: Args): LegRecovered {
  return {
    ...labelsOf(context),
    ncid: ncidOf(event) ?? '',
    missing: isMissing(context) && context.observes !== true,
    alerted: context.alerted !== undefined,
    tries: context.tries + context.failures,
    ...(context.eventAt !== undefined && { eventAt: context.eventAt }),
  };
}
