/** Describes records of the OTLP receiver for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { intake } from '../../machines/otlp/intake.ts';

export const words: RecordWords = {
  'otlp.intake': describeIntakeRecord,
};

export function describeIntakeRecord({ event }: RecordOf<typeof intake>): string | undefined {
  switch (event.type) {
    case 'DATABASE_AVAILABLE':
      return `inserts into ${event.place}`;
    case 'DATABASE_UNAVAILABLE':
      return `keeps telemetry on disk: ${event.reason}`;
    case 'OVERLOADED':
      return 'refuses what it has no memory for';
    case 'RELIEVED':
      return `takes everything again, ${event.refused} requests were refused`;
    case 'SPOOL_BLOCKED':
      return `refuses everything: ${event.reason}`;
    case 'SPOOL_WRITABLE':
      return 'takes telemetry again';
    default:
      // Timers are shown by their own name; outcomes of effects are routine.
      return String(event.type).startsWith('xstate.') ? DEFAULT_WORDS : HIDDEN;
  }
}
