/** Describes records of the connection to the columnar database for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { columnarBackups } from '../../machines/columnar/backups.ts';
import type { connection } from '../../machines/connection.ts';

export const words: RecordWords = {
  'columnar.connection': describeConnectionRecord,
  'columnar.backups': describeColumnarBackup,
};

export function describeConnectionRecord(record: RecordOf<typeof connection>): string | undefined {
  const { event } = record;
  if (event.type === 'CONNECTED') return `the columnar database (${event.store}) answers`;
  if (event.type === 'LOST') return `the columnar database (${event.store}) is lost: ${event.reason}`;
  if (String(event.type) === 'effect.done') return HIDDEN;
  return routineWords(record, { init: 'starts', MISSED: 'was asked for while it was away' });
}
describeConnectionRecord.problem = problemEvents('LOST', 'MISSED');

export function describeColumnarBackup(record: RecordOf<typeof columnarBackups>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'MADE':
      return `a backup of the columnar database was made: ${event.backup.name}`;
    case 'FAILED':
      return `no backup of the columnar database could be made: ${event.reason}`;
    case 'GONE':
      return `backups of the columnar database are gone: ${event.names.join(', ')}`;
    case 'DRILLED':
      return `a drill of ${event.name}: ${event.proven ? 'proven' : `not proven, ${event.reasons.join('; ')}`}`;
    case 'CHECKED':
      return routineWords(record, { CHECKED: 'the files of the backups were looked at' });
  }
  return String(event.type) === 'effect.done' ? HIDDEN : DEFAULT_WORDS;
}
