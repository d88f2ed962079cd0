import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { LegEvent } from '../../machines/reconciler/leg-shapes.ts';

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
      if (asks('router.leg_recovered')) return `is whole again, seen in ${ncid(event)}`;
      if (asks('router.add_address')) return `lacks its address in ${ncid(event)}, adds it`;
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
