import type { Bus } from '../../bus/bus.ts';
import { type JobRun, jobRun, type RunCause } from '../contracts/jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { isCoded } from '../kernel/errors/holdfast-error.ts';

/** Where a run stands in the log. */
interface Origin {
  readonly correlation: string;
  /** Sequence number of the record that asked for it. */
  readonly cause: number;
}

/**
 * Does the work of a scheduled run and publishes its beginning and its end (`jobRun`).
 *
 * @param job its name, e.g. `memory.snapshot`
 * @returns what `work` returns
 * @throws what `work` throws
 */
export async function publishRun<T>(
  { bus, clock }: { readonly bus: Bus; readonly clock: Clock },
  job: string,
  { correlation, cause }: Origin,
  work: () => Promise<T>,
): Promise<T> {
  const publish = (run: JobRun) => bus.publish(jobRun, run, { correlation, cause });
  publish({ phase: 'started', job, at: clock.now() });
  try {
    const result = await work();
    publish({ phase: 'ended', job, at: clock.now(), outcome: 'succeeded' });
    return result;
  } catch (error) {
    publish({ phase: 'ended', job, at: clock.now(), outcome: 'failed', ...runFailure(error) });
    throw error;
  }
}

/** An error as the end of a run reports it. */
export function runFailure(error: unknown): { readonly cause: RunCause; readonly text: string } {
  const text = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
  const isLate = isCoded(error, 'HF_EFFECT_TIMEOUT') || /\btimeout\b|aborted/i.test(text);
  return { cause: isLate ? 'deadline' : 'exit', text: text.slice(0, 1_000) };
}
