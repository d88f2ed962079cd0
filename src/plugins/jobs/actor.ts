import { defineActor, HIDDEN } from '../../core/kernel/actors/definition.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { JobContext } from '../../machines/jobs/job.ts';
import { job } from '../../machines/jobs/job.ts';

/** One run: its key is `<job>/<correlation>` for a run of this process, `cluster/<uid>` for a Job of a cluster. */
export const jobActor = defineActor({
  type: 'jobs.job',
  machine: job,
  version: 1,
  describe: describeJobRecord,
});

export type JobSnapshot = ActorSnapshot<typeof job>;

/** A run that goes well is routine. */
function describeJobRecord({ event, to }: LogRecord): string | undefined {
  const { cause, name }: Partial<Pick<JobContext, 'cause' | 'name'>> = to.context ?? {};
  if (cause) return `${name === undefined ? '' : `${name} `}failed, ${cause.kind}: ${cause.text}`;
  return event.type === 'GONE' ? 'is gone' : HIDDEN;
}
