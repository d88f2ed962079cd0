import type { Clock } from '../../kernel/clock.ts';

/** An `import` of node:http would load Node's fetch, too. */
const { request } = process.getBuiltinModule('node:http');

const TICK_MS = 1_000;
/** After so many ticks without an answer a question is sent. */
const ASK_AFTER = 5;
/** After so many the instance counts as frozen. */
const SILENT_AFTER = 15;

/**
 * Asks an instance from time to time for something that it answers at once, also while it works: a process that is stopped, or whose event loop
 * stands still, takes connections and answers none. Ticks are counted instead of time, so that a command that was stopped itself does not blame it.
 *
 * @param socketPath its control socket
 * @param onSilent called once when no answer came for so many seconds
 * @returns ends it
 */
export function watchLife(socketPath: string, clock: Clock, onSilent: (seconds: number) => void): () => void {
  const over = new AbortController();
  let unanswered = 0;
  const ask = () => {
    const asked = request({ socketPath, path: '/', headers: { host: 'localhost' }, signal: over.signal });
    asked.on('response', (answer) => {
      unanswered = 0;
      answer.resume();
    });
    asked.on('error', () => {}); // whoever waits for its answer hears of it, too
    asked.end();
  };
  let cancel = () => {};
  const tick = () => {
    cancel = clock.after(TICK_MS, () => {
      unanswered += 1;
      if (unanswered === SILENT_AFTER) return onSilent((SILENT_AFTER * TICK_MS) / 1_000);
      if (unanswered === ASK_AFTER) ask();
      tick();
    });
  };
  tick();
  return () => {
    cancel();
    over.abort();
  };
}
