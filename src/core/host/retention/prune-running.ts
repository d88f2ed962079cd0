import { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { startWorker } from '../../kernel/worker.ts';
import { HostError } from '../errors/host-error.ts';
import type { ArchiverMessage } from './archive.ts';
import type { PruneJob } from './plan.ts';
import type { Pruned } from './prune-stopped.ts';

const running = new WeakSet<EventLog>();

interface PruneOptions {
  /** Called when the archive is on the disk and was read back, before anything is deleted. Waited for. */
  readonly onArchived?: (file: string) => Promise<void>;
  /** Ends the archiving. What is being deleted is deleted to its end. */
  readonly signal?: AbortSignal;
}

/**
 * Prunes the log of a running instance. A thread of its own archives; the writer deletes a little at a time, between
 * commits. A kill on the way leaves an archive too much, and never a record too few.
 *
 * @throws HF_LOG_PRUNING it is pruned already; what `archive` throws; HF_LOG_CLOSED
 */
export async function pruneRunning(
  log: EventLog,
  job: PruneJob,
  { onArchived, signal }: PruneOptions = {},
): Promise<Pruned> {
  if (running.has(log)) throw new HostError('HF_LOG_PRUNING', { dir: job.dataDir });
  running.add(log);
  try {
    const { pruned, states } = await archived(job, signal);
    if (pruned.file === undefined) return pruned;
    await onArchived?.(pruned.file);
    await log.prune(pruned.plan.to, states);
    return pruned;
  } finally {
    running.delete(log);
  }
}

function archived(
  data: PruneJob,
  signal?: AbortSignal,
): Promise<{ pruned: Pruned; states: readonly (readonly string[])[] }> {
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
    onEnd: (reason) => reject(new HostError('HF_LOG_ARCHIVE', { reason })),
  });
  worker.ref();
  const end = () => void worker.terminate();
  if (signal?.aborted) end();
  signal?.addEventListener('abort', end, { once: true });
  return promise.finally(() => signal?.removeEventListener('abort', end));
}
