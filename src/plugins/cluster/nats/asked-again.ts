import type { Clock } from '../../../core/kernel/clock.ts';

/** Until a question is asked again that nobody has answered, milliseconds. */
const AGAIN_MS = 1_000;

/**
 * Asks again each second what nobody has answered: a question to a stream that has no leader is lost, and whoever is elected then never hears of it. The first
 * answer counts, or the first refusal: also that nobody answered the first question in time.
 *
 * @param ask changes nothing, and settles in the end
 */
export function askedAgain<T>(ask: () => Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel = () => {};
    const attempt = () => {
      cancel = clock.after(AGAIN_MS, attempt);
      void ask()
        .then(resolve, reject)
        .finally(() => cancel());
    };
    attempt();
  });
}
