/** Describes records of backups for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */

import { counted } from '../../core/host/terminal.ts';
import {
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { memoryBackups } from '../../machines/memory/backups.ts';

export const words: RecordWords = {
  'memory.backups': describeBackupsRecord,
};

export function describeBackupsRecord(record: RecordOf<typeof memoryBackups>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'MADE':
      return `was made: ${event.backup?.name}`;
    case 'NOTHING_TO_BACK_UP':
      return `none was made: ${event.reason}`;
    case 'PRUNED':
      return event.deleted?.length > 0
        ? `deleted ${event.deleted.join(', ')}`
        : routineWords(record, { PRUNED: 'none was old enough to be deleted' });
    case 'DEPLOYMENT_CHECKED':
      return event.findings?.length > 0
        ? `the deployment in the cluster: ${event.findings.join('; ')}`
        : routineWords(record, { DEPLOYMENT_CHECKED: 'the deployment in the cluster is as it should be' });
    case 'SEEDED':
      return `${counted(Number(event.ids?.length), 'fixed point')} to prove restores by`;
    default:
      return routineWords(record, BACKUPS);
  }
}
describeBackupsRecord.problem = problemEvents('NOTHING_TO_BACK_UP');

const BACKUPS = {
  REQUESTED: 'is requested',
  PRUNE_REQUESTED: 'old ones are to be deleted',
  CHECK: 'is checked',
  SEEN: 'the list of the store differs from the one before',
  LISTED: 'is in the list of the store',
  retry: 'is tried again',
};
