import type { Clock } from '../../../core/kernel/clock.ts';

/** Until a question is asked again that nobody has answered, milliseconds. */
const AGAIN_MS = 1_000;

/**
 * Asks again each second what nobody has answered: a question to a stream that has no leader is lost, and whoever is elected then never hears of it. The first
 * answer counts, or the first refusal: also that nobody answered the first question in time.
 *
 * @param ask changes nothing, and settles in the end
 * @param isBehind whether answers are behind something large on a slow link: asking again would make them later
 */
export function askedAgain<T>(ask: () => Promise<T>, clock: Clock, isBehind = () => false): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel = () => {};
    const wait = () => {
      cancel = clock.after(AGAIN_MS, () => (isBehind() ? wait() : attempt()));
    };
    const attempt = () => {
      wait();
      void ask()
        .then(resolve, reject)
        .finally(() => cancel());
    };
    attempt();
  });
}
