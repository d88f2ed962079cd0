import type { Alert } from '../effect.ts';
import type { Args, LegContext, LegEvent, LegRecovered, LegSettings } from './leg-shapes.ts';

/** Why a try failed, as text for the alert. */
export function reasonOf(event: LegEvent): string | undefined {
  switch (event.type) {
    case 'CONFLICT':
      return 'another writer saved in between';
    case 'REFUSED':
      return event.errors.join('; ');
    case 'UNKNOWN':
    case 'UNREACHABLE':
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

/** The back-off of the next try, milliseconds: short and jittered after a lost race, longer for a router that cannot be read. */
export function pauseAfter(event: LegEvent, { retryMs, waitMs, tries, jitter }: LegContext): number {
  if (event.type === 'UNREACHABLE' || event.type === 'effect.failed') return waitMs;
  return Math.round(retryMs * 2 ** tries * (0.5 + (jitterOf(event) ?? jitter)));
}

/**
 * The pause after giving up, milliseconds. After a lost race it is short: somebody is saving, and a save that touches no
 * interface publishes no event that would end the pause.
 */
export function restAfter(event: LegEvent, { waitMs, resyncMs }: LegContext): number {
  return event.type === 'CONFLICT' ? waitMs : resyncMs;
}

export const ncidOf = (event: LegEvent) => ('ncid' in event ? event.ncid : undefined);

export const publishedAt = (event: LegEvent) => (event.type === 'CHANGED' ? event.at : undefined);

const labelsOf = ({ intf, label, address }: LegSettings) => ({ intf, label, address });

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

export function vanished(context: LegContext): Alert {
  const { intf, label } = context;
  return {
    name: 'reconciler.leg.leg_absent',
    severity: 'warning',
    text: `The router's config has no interface ${intf} (${label}): so ${context.address} cannot be added.`,
    labels: labelsOf(context),
  };
}

export function recovery({ context, event }: Args): LegRecovered {
  return {
    ...labelsOf(context),
    ncid: ncidOf(event) ?? '',
    missing: isMissing(context) && context.observes !== true,
    alerted: context.alerted === true,
    tries: context.tries,
    ...(context.eventAt !== undefined && { eventAt: context.eventAt }),
  };
}
