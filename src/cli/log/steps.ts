import { setImmediate as turn } from 'node:timers/promises';
import type { CommandContext } from '../../core/host/plugin/command.ts';

/**
 * Runs work that goes through a log in steps, showing its progress. Between two steps signals are handled.
 *
 * @param steps yields how many records are done
 * @param text the progress, e.g. `checked 500 of 1200 records`
 * @returns what the steps return
 * @throws the signal's reason when the command is interrupted
 */
export async function runSteps<T>(
  steps: Generator<number, T>,
  { terminal, signal }: Pick<CommandContext, 'terminal' | 'signal'>,
  text: (done: number) => string,
): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    terminal.progress(text(value));
    await turn();
    signal.throwIfAborted();
  }
}
