import type { Clock } from '../kernel/clock.ts';

// Waits that end although the work goes on: not everything heeds a signal.

/**
 * Waits for work, until a signal is aborted.
 *
 * @param onAborted called when the wait is given up
 * @returns what the work returns
 * @throws what the work throws; the signal's reason
 */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  onAborted: () => void = () => {},
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    aborted.reject(signal.reason);
    onAborted();
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

export interface Deadline {
  /** The longest wait, milliseconds. */
  readonly ms: number;
  /** What counts the milliseconds; without it real time, which keeps the process alive until then. */
  readonly clock?: Clock;
  /** Makes what is thrown when the time is over. */
  readonly late: () => Error;
  /** Gives the work up earlier. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs work that must end in time.
 *
 * @param work gets a signal that is aborted when it is given up
 * @returns what the work returns
 * @throws what the work throws; after it was given up what `late` makes, or the reason of `signal`
 */
export async function withDeadline<T>(
  { ms, clock, late, signal }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const cancel = after(clock, ms, () => over.abort(late()));
  const giveUp = () => over.abort(signal?.reason);
  signal?.addEventListener('abort', giveUp, { once: true });
  if (signal?.aborted) giveUp();
  try {
    over.signal.throwIfAborted();
    return await unlessAborted(work(over.signal), over.signal);
  } catch (error) {
    // The work may have thrown an error of its own on the signal.
    throw over.signal.aborted ? over.signal.reason : error;
  } finally {
    cancel();
    signal?.removeEventListener('abort', giveUp);
  }
}

/**
 * Waits for work as long as it may take.
 *
 * @param ms milliseconds of real time
 * @returns false when it has not ended by then
 * @throws what the work throws in time
 */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const cancel = after(undefined, ms, () => late.resolve(false));
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    cancel();
  }
}

function after(clock: Clock | undefined, ms: number, callback: () => void): () => void {
  if (clock) return clock.after(ms, callback);
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}
