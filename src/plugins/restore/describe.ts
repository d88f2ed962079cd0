import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { RestoreEvent } from '../../machines/restore/drill-shapes.ts';

/** A record of a drill in an operator's words, for `holdfast log`. */
export function describeDrillRecord({ event: recorded, to, effects }: LogRecord): string | undefined {
  const event = recorded as unknown as RestoreEvent | { type: 'init' | 'effect.done' };
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return '';
    case 'ASKED': {
      const isTaken = effects.some(({ type }) => type === 'restore.choose');
      return `drill ${event.id} of path ${event.path} ${isTaken ? 'begins' : 'is refused, another one runs'}`;
    }
    case 'CANCEL':
      return `is given up: ${event.reason}`;
    case 'STARTED':
      return event.leftovers?.length > 0 ? `finds left behind: ${event.leftovers.join(', ')}` : '';
    case 'CHOSEN':
      return `restores ${event.source?.kind} ${event.source?.name}`;
    case 'PREPARED':
      return `into ${event.place}`;
    case 'RECOVERED':
      return 'is recovered';
    case 'VERIFIED':
      return `${event.report?.ok ? 'proven' : 'not proven'}: ${event.report?.verdict}`;
    case 'CLEANED':
      return `removed ${event.removed?.join(', ')}`;
    case 'effect.failed':
      return to.value === 'uncleaned' ? `is not cleaned up: ${event.message}` : `fails: ${event.message}`;
    case 'effect.lost':
      return 'was interrupted by the end of the runtime';
    default:
      return undefined;
  }
}
