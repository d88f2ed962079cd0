/** The actors of the reconciler, and their records in an operator's words for `holdfast log`. */
import { DEFAULT_WORDS, defineActor, HIDDEN, type RecordOf } from '../../core/kernel/actors/definition.ts';
import { delayOf } from '../../core/kernel/log/record.ts';
import { heartbeat } from '../../machines/reconciler/heartbeat.ts';
import { leg } from '../../machines/reconciler/leg.ts';
import { unit } from '../../machines/reconciler/unit.ts';

/** One actor a leg; its key is the interface's name. */
export const legActor = defineActor({
  type: 'reconciler.leg',
  machine: leg,
  version: 1,
  describe: describeLegRecord,
});

/** Whether the reconciler as a whole runs or is paused. */
export const unitActor = defineActor({ type: 'reconciler.unit', machine: unit, version: 1 });
export const UNIT_KEY = 'ula-reconcile';

/** The beats to the uptime monitor; its key is the monitor's name. */
export const heartbeatActor = defineActor({
  type: 'reconciler.heartbeat',
  machine: heartbeat,
  version: 1,
  describe: describeHeartbeat,
});

export function describeLegRecord({ event, to, effects }: RecordOf<typeof leg>): string | undefined {
  const asks = (type: string) => effects.some((effect) => effect.type === type);
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return HIDDEN;
    case 'CHANGED':
      return `hears that ${event.intf ?? 'an interface'} was reapplied`;
    case 'RESYNC':
      return `is checked: ${event.reason}`;
    case 'CONFIGURE':
      return `is to have ${event.leg?.address}`;
    case 'RELEASE':
      return 'is no longer listed';
    case 'LEG_READ':
      if (asks('reconciler.leg_recovered')) return `is whole again, seen in ${ncidText(event)}`;
      if (asks('reconciler.add_address')) return `lacks its address in ${ncidText(event)}, adds it`;
      return to.context?.tries ? `still lacks its address in ${ncidText(event)}` : HIDDEN;
    case 'LEG_ABSENT':
      return `has no interface in ${ncidText(event)}`;
    case 'UNREACHABLE':
      return `cannot be read: ${event.reason}`;
    case 'ADDED':
      return `posted ${listText(event.posted, ', ')}: ${ncidText(event)}`;
    case 'CONFLICT':
      return 'lost the race for the ncid';
    case 'PENDING':
      return 'waits for a pending transaction';
    case 'REFUSED':
      return `was refused: ${listText(event.errors, '; ')}`;
    case 'UNKNOWN':
      return `does not know whether it was applied: ${event.reason}`;
    default:
      return delayOf(event.type) === undefined ? DEFAULT_WORDS : HIDDEN;
  }
}

/** A beat that arrives is routine. */
function describeHeartbeat({ event }: RecordOf<typeof heartbeat>): string | undefined {
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `no beat arrives: HTTP ${event.status}: ${event.msg ?? event.body}`;
    case 'PUSH_FAILED':
      return `no beat arrives: ${event.reason}`;
    case 'init':
    case 'START':
    case 'HEARD':
    case 'PUSHED':
    case 'STOP':
    case 'effect.done':
      return HIDDEN;
    default:
      return delayOf(event.type) === undefined ? DEFAULT_WORDS : HIDDEN;
  }
}

// The fields of an imported record may be anything.

function ncidText({ ncid }: { readonly ncid: string }): string {
  return `ncid ${String(ncid).slice(0, 8)}…`;
}

function listText(items: readonly string[], separator: string): string {
  return Array.isArray(items) ? items.join(separator) : '?';
}
