/** Describes records of scheduled runs for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import { HIDDEN, type RecordWords } from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { JobContext } from '../../machines/jobs/job.ts';

export const words: RecordWords = {
  'jobs.job': describeJobRecord,
};

/** A run that goes well is routine. */
export function describeJobRecord({ event, to }: LogRecord): string | undefined {
  const { cause, name }: Partial<Pick<JobContext, 'cause' | 'name'>> = to.context ?? {};
  if (cause) return `${name === undefined ? '' : `${name} `}failed, ${cause.kind}: ${cause.text}`;
  return event.type === 'GONE' ? 'is gone' : HIDDEN;
}
