/** Records of the connection to the columnar database, in an operator's words for `holdfast log`. Nothing that a running plugin needs is loaded with them. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { connection } from '../../machines/connection.ts';

export const words: RecordWords = {
  'columnar.connection': describeConnectionRecord,
};

export function describeConnectionRecord({ event }: RecordOf<typeof connection>): string | undefined {
  if (event.type === 'CONNECTED') return `the columnar database (${event.store}) answers`;
  if (event.type === 'LOST') return `the columnar database (${event.store}) is lost: ${event.reason}`;
  return String(event.type) === 'effect.done' ? HIDDEN : DEFAULT_WORDS;
}
