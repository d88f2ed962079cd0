import { createInterface } from 'node:readline';

/**
 * Asks on the terminal whether the change is to stay. What is no "y" or "yes" is a no, and so is the end of input.
 *
 * @param over aborts the question
 * @returns undefined when it was aborted
 */
export function askToKeep(over: AbortSignal): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    // The terminal echoes and edits the line by itself, and its Ctrl-C stays a signal.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const settle = (answer: boolean | undefined) => {
      resolve(answer); // first, for closing tells of an end of input
      over.removeEventListener('abort', abandon);
      lines.close();
      process.stdin.pause();
    };
    const abandon = () => settle(undefined);
    if (over.aborted) return abandon();
    over.addEventListener('abort', abandon, { once: true });
    lines.once('line', (text) => settle(/^\s*y(es)?\s*$/i.test(text)));
    lines.once('close', () => settle(false));
  });
}
