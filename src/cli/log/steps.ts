import { setImmediate as turn } from 'node:timers/promises';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { progressOf } from '../../core/host/progress.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

/**
 * Runs work that goes through a log in steps, showing its progress. Between two steps signals are handled.
 *
 * @param steps yields how many records are done
 * @param onStep shows the progress: gets how many records are done
 * @returns what the steps return
 * @throws the signal's reason when the command is interrupted
 */
export async function runSteps<T>(
  steps: Generator<number, T>,
  { signal }: Pick<CommandContext, 'signal'>,
  onStep: (done: number) => void,
): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    onStep(value);
    await turn();
    signal.throwIfAborted();
  }
}

/** Shows how far a walk over a log is; its bytes are taken to be spread evenly over its records. */
export function recordProgress(
  what: string,
  log: SqliteReader,
  context: Pick<CommandContext, 'terminal' | 'note'>,
): (seq: number) => void {
  const onProgress = progressOf(what, context);
  const [first, last, bytes] = [log.firstSeq(), log.lastSeq(), log.usedBytes()];
  return (seq) => {
    const part = (seq - first + 1) / Math.max(1, last - first + 1);
    onProgress(part * bytes, part);
  };
}
