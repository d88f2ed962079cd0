import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { defineToken, type Token } from './token.ts';

/** Why a run did not succeed, as far as its own process knows. */
const cause = z.enum(['exit', 'deadline', 'unknown']);
export type RunCause = z.output<typeof cause>;

const job = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/);
const run = z.discriminatedUnion('phase', [
  z.object({ phase: z.literal('started'), job, at: z.number() }),
  z.object({
    phase: z.literal('ended'),
    job,
    at: z.number(),
    /** The result of the run itself, not of what it checked. */
    outcome: z.enum(['succeeded', 'failed']),
    cause: cause.optional(),
    /** One line, without secrets. */
    text: z.string().max(1_000).optional(),
  }),
]);

/** A run of a schedule of ours, at its beginning or its end; both carry the same correlation. */
export type JobRun = Readonly<z.output<typeof run>>;

/** Runs on a schedule are published here, so that they are shown and counted like jobs of a cluster. */
export const jobRun = defineTopic('jobs.run', run, 'A scheduled run of this process began or ended.');

const repeated = z.object({ phase: z.enum(['started', 'ended', 'recorded']), job, at: z.number() });

/** A run that is not recorded, because it does what the one before did; `recorded` if it turns out otherwise. */
export type JobRepeated = Readonly<z.output<typeof repeated>>;

export const jobRepeated = defineTopic(
  'jobs.repeated',
  repeated,
  'A scheduled run that is only counted began or succeeded, or is made again and recorded.',
);

/** A scheduled run that failed and still counts. */
export interface FailedRun {
  /** The run's name, e.g. `clickstack-watchdog-29384123`. */
  readonly run: string;
  readonly namespace: string;
  /** Why it failed and what that means, one line. */
  readonly text: string;
}

/** The runs of schedules, of this process and of the cluster that it reads. */
export interface ScheduledRuns {
  /** Those that failed, until the alert on them ends. */
  failed(): readonly FailedRun[];
  /** Names of all runs that are listed, however they ended. */
  known(): readonly string[];
  /** Why the list may lack runs of the cluster; undefined when it is whole. */
  fault(): string | undefined;
}

/** Provided by the plugin that records scheduled runs. */
export const ScheduledRunsToken: Token<ScheduledRuns> = defineToken('scheduled-runs');
