import type { CommandContext } from '../../core/host/plugin/command.ts';
import { progressOf } from '../../core/host/progress.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

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
