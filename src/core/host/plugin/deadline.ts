import type { Clock } from '../../kernel/clock.ts';

/**
 * Waits for work, but no longer than `ms`. The work is not ended by that: who needs to know when it ends after
 * all keeps its promise.
 *
 * @param late makes the error to reject with when the time is over
 */
export async function within<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  // Clock timers never keep the process alive; with nothing else open it would end before the deadline could speak.
  const alive = setInterval(() => {}, 2 ** 30);
  let cancel = () => {};
  const deadline = new Promise<never>((_, reject) => {
    cancel = clock.after(ms, () => reject(late()));
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    cancel();
    clearInterval(alive);
  }
}
