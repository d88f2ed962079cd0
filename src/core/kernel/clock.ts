import { asEpochMs, type EpochMs } from './ids.ts';

/** Time as the runtime sees it. Tests hand in `VirtualClock` and move it by hand. */
export interface Clock {
  now(): EpochMs;
  /** Calls back once after `delayMs`; the returned function cancels. Never keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Node fires a timer with a longer delay at once; such a wait is made in steps. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => asEpochMs(Date.now()),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const arm = (remainingMs: number) => {
      const step = Math.min(Math.max(remainingMs, 0), LONGEST_TIMEOUT_MS);
      timer = setTimeout(() => (remainingMs > step ? arm(remainingMs - step) : callback()), step);
      timer.unref();
    };
    arm(delayMs);
    return () => clearTimeout(timer);
  },
};
