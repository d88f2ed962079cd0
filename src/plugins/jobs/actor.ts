import { defineActor } from '../../core/kernel/actors/definition.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { job } from '../../machines/jobs/job.ts';
import { describeJobRecord } from './words.ts';

/** One run: its key is `<job>/<correlation>` for a run of this process, `cluster/<uid>` for a Job of a cluster. */
export const jobActor = defineActor({
  type: 'jobs.job',
  machine: job,
  version: 1,
  describe: describeJobRecord,
});

export type JobSnapshot = ActorSnapshot<typeof job>;
