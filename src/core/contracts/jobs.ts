import { z } from 'zod';
import type { Bus } from '../../bus/bus.ts';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { Clock } from '../kernel/clock.ts';
import { isCoded } from '../kernel/errors/holdfast-error.ts';

/** Why a run did not succeed, as far as its own process can know it. */
export type RunCause = 'exit' | 'deadline' | 'unknown';

/** A run of a schedule of ours, at its beginning or its end; both carry the same correlation. */
export type JobRun =
  | { readonly phase: 'started'; readonly job: string; readonly at: number }
  | {
      readonly phase: 'ended';
      readonly job: string;
      readonly at: number;
      /** Says how the run went, and nothing of what it looked at. */
      readonly outcome: 'succeeded' | 'failed';
      readonly cause?: RunCause | undefined;
      /** One line, without secrets. */
      readonly text?: string | undefined;
    };

const job = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/);

/** Whoever runs something on a schedule says so here, and it is shown and counted like a job of a cluster. */
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

/** Where a run stands in the log. */
interface Story {
  readonly correlation: string;
  readonly cause: number;
}

/** Does the work of a run, and tells its beginning and its end. What the work throws is thrown on. */
export async function asRun<T>(
  { bus, clock }: { readonly bus: Bus; readonly clock: Clock },
  name: string,
  { correlation, cause }: Story,
  work: () => Promise<T>,
): Promise<T> {
  const tell = (run: JobRun) => bus.publish(jobRun, run, { correlation, cause });
  tell({ phase: 'started', job: name, at: clock.now() });
  try {
    const result = await work();
    tell({ phase: 'ended', job: name, at: clock.now(), outcome: 'succeeded' });
    return result;
  } catch (error) {
    tell({ phase: 'ended', job: name, at: clock.now(), outcome: 'failed', ...failureOf(error) });
    throw error;
  }
}

/** A failure in the words of a run's end. */
export function failureOf(error: unknown): { readonly cause: RunCause; readonly text: string } {
  const text = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
  const late = isCoded(error, 'HF_EFFECT_TIMEOUT') || /\btimeout\b|aborted/i.test(text);
  return { cause: late ? 'deadline' : 'exit', text: text.slice(0, 1_000) };
}
