/** Describes records of restore drills for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  HIDDEN,
  type ProblemTest,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { restoreDrill } from '../../machines/restore/drill.ts';
import type { restoreOverdue } from '../../machines/restore/overdue.ts';

export const words: RecordWords = {
  'restore.drill': describeDrillRecord,
  'restore.overdue': describeOverdue,
};

export function describeDrillRecord(record: RecordOf<typeof restoreDrill>): string | undefined {
  if (isRoutine(record)) return HIDDEN;
  const { event, to, effects } = record;
  switch (event.type) {
    case 'REQUESTED': {
      const isAccepted = effects.some(({ type }) => type === 'restore.choose');
      return `drill ${event.id} of path ${event.path} ${isAccepted ? 'begins' : 'is refused, another one runs'}`;
    }
    case 'CANCEL':
      return `is cancelled: ${event.reason}`;
    case 'STARTED':
      return event.leftovers?.length > 0
        ? `finds left behind: ${event.leftovers.join(', ')}`
        : routineWords(record, { STARTED: 'is ready' });
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
      return routineWords(record, { retryClean: 'is cleaned up again' });
  }
}
describeDrillRecord.problem = {
  marks: ['"VERIFIED"', '"REQUESTED"'],
  is: ({ event, effects }) =>
    (event.type === 'VERIFIED' && event.report?.ok !== true) ||
    (event.type === 'REQUESTED' && !effects.some(({ type }) => type === 'restore.choose')),
} satisfies ProblemTest;

const isRoutine = ({ event }: LogRecord): boolean => event.type === 'init' || event.type === 'effect.done';

export function describeOverdue(record: RecordOf<typeof restoreOverdue>): string | undefined {
  return routineWords(record, {
    WATCH: 'is watched',
    DRILLED: 'a drill has ended',
    overdue: 'no drill was made in time',
  });
}
