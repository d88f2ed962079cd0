/** Describes records of scheduled runs for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import { HIDDEN, type RecordWords, routineWords } from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { JobContext } from '../../machines/jobs/job.ts';

export const words: RecordWords = {
  'jobs.job': describeJobRecord,
};

const ROUTINE = {
  STARTED: 'begins',
  OBSERVED: 'was seen in the cluster',
  ORPHANED: 'was left behind by a process that ended',
  ttl: 'is shown no longer',
  clear: 'is forgotten',
};

/** A run that goes well is routine. */
export function describeJobRecord(record: LogRecord): string | undefined {
  const { event, to } = record;
  const { cause, name }: Partial<Pick<JobContext, 'cause' | 'name'>> = to.context ?? {};
  if (cause) return `${name === undefined ? '' : `${name} `}failed, ${cause.kind}: ${cause.text}`;
  if (event.type === 'GONE') return 'is gone';
  return event.type === 'init'
    ? HIDDEN
    : routineWords(record, { ...ROUTINE, ENDED: `ended: ${String(event.outcome)}` });
}
