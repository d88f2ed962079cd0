import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { defineToken, type Token } from './token.ts';

/** Why a run did not succeed, as far as its own process knows. */
export type RunCause = 'exit' | 'deadline' | 'unknown';

/** A run of a schedule of ours, at its beginning or its end; both carry the same correlation. */
export type JobRun =
  | { readonly phase: 'started'; readonly job: string; readonly at: number }
  | {
      readonly phase: 'ended';
      readonly job: string;
      readonly at: number;
      /** The result of the run itself, not of what it checked. */
      readonly outcome: 'succeeded' | 'failed';
      readonly cause?: RunCause | undefined;
      /** One line, without secrets. */
      readonly text?: string | undefined;
    };

const job = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/);

/** Runs on a schedule are published here, so that they are shown and counted like jobs of a cluster. */
export const jobRun: Topic<JobRun> = defineTopic(
  'jobs.run',
  z.discriminatedUnion('phase', [
    z.object({ phase: z.literal('started'), job, at: z.number() }),
    z.object({
      phase: z.literal('ended'),
      job,
      at: z.number(),
      outcome: z.enum(['succeeded', 'failed']),
      cause: z.enum(['exit', 'deadline', 'unknown']).optional(),
      text: z.string().max(1_000).optional(),
    }),
  ]),
  'A scheduled run of this process began or ended.',
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
