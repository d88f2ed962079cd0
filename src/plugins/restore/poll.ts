import type { Clock } from '../../core/kernel/clock.ts';

/** Waits, unless the signal is aborted first. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/**
 * Looks again and again until something is there.
 *
 * @param look `undefined` for not yet; what it throws ends the wait
 * @returns undefined when the time is over
 */
export async function until<T>(
  look: () => Promise<T | undefined>,
  {
    clock,
    everyMs,
    withinMs,
    signal,
  }: {
    readonly clock: Clock;
    readonly everyMs: number;
    readonly withinMs: number;
    readonly signal: AbortSignal;
  },
): Promise<T | undefined> {
  const end = clock.now() + withinMs;
  for (;;) {
    signal.throwIfAborted();
    const found = await look();
    if (found !== undefined) return found;
    if (clock.now() + everyMs > end) return undefined;
    await pause(clock, everyMs, signal);
  }
}
