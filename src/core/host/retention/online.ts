import { CoreError } from '../../kernel/errors/core-error.ts';
import { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { startWorker } from '../../kernel/worker.ts';
import type { Pruned } from './offline.ts';
import type { PruneRequest } from './plan.ts';
import type { ArchiverMessage } from './protocol.ts';

const running = new WeakSet<EventLog>();

/**
 * Prunes the log of a running instance. A thread of its own archives; the writer deletes a little at a time, between
 * commits. A kill on the way leaves an archive too much, and never a record too few.
 *
 * @throws HF_LOG_PRUNING it is pruned already; what `archive` throws; HF_LOG_CLOSED
 */
export async function pruneRunning(
  log: EventLog,
  dataDir: string,
  request: PruneRequest,
  folder: string,
  now: number,
): Promise<Pruned> {
  if (running.has(log)) throw new CoreError('HF_LOG_PRUNING', { dir: dataDir });
  running.add(log);
  try {
    const { pruned, states } = await archived({ dataDir, request, folder, now });
    if (pruned.file !== undefined) await log.prune(pruned.plan.to, states);
    return pruned;
  } finally {
    running.delete(log);
  }
}

function archived(data: object): Promise<{ pruned: Pruned; states: readonly (readonly string[])[] }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    pruned: Pruned;
    states: readonly (readonly string[])[];
  }>();
  const states: (readonly string[])[] = [];
  let pruned: Pruned | undefined;
  const worker = startWorker({
    module: './archiver',
    base: import.meta.url,
    name: 'log-archiver',
    data,
    onMessage(message: ArchiverMessage) {
      if (message.kind === 'archived') {
        const { plan, file } = message;
        pruned = { plan, ...(file !== undefined && { file }) };
      }
      if (message.kind === 'states') states.push(message.rows);
      if (message.kind === 'end' && pruned) resolve({ pruned, states });
      if (message.kind === 'failed') {
        reject(HoldfastError.fromData(message.error));
      }
    },
    onEnd: (reason) => reject(new CoreError('HF_LOG_ARCHIVE', { reason })),
  });
  worker.ref();
  return promise;
}
