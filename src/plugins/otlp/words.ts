/** Describes records of the OTLP receiver for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import { counted } from '../../core/host/terminal.ts';
import {
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import { delayOf } from '../../core/kernel/log/record.ts';
import type { intake } from '../../machines/otlp/intake.ts';

export const words: RecordWords = {
  'otlp.intake': describeIntakeRecord,
};

export function describeIntakeRecord(record: RecordOf<typeof intake>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'DATABASE_AVAILABLE':
      return `inserts into ${event.place}`;
    case 'DATABASE_UNAVAILABLE':
      return `keeps telemetry on disk: ${event.reason}`;
    case 'OVERLOADED':
      return 'refuses what it has no memory for';
    case 'RELIEVED':
      return `takes everything again, ${counted(Number(event.refused), 'request was', 'requests were')} refused`;
    case 'SPOOL_BLOCKED':
      return `refuses everything: ${event.reason}`;
    case 'SPOOL_WRITABLE':
      return 'takes telemetry again';
    default:
      // Outcomes of effects are routine.
      return delayOf(String(event.type)) === undefined
        ? HIDDEN
        : routineWords(record, { patience: 'the database has been away for long' });
  }
}
describeIntakeRecord.problem = problemEvents('OVERLOADED', 'SPOOL_BLOCKED', 'DATABASE_UNAVAILABLE');
