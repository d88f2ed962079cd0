import type { Clock } from '../../kernel/clock.ts';
import { HoldfastError, isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { startWorker } from '../../kernel/worker.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import type { ArchiverMessage } from './archive.ts';
import type { PruneRequest } from './plan.ts';
import type { Pruned } from './prune-stopped.ts';

/** What a runtime lets go by itself. */
export interface RetentionSettings extends PruneRequest {
  /** Absolute path; where archives go. */
  readonly folder: string;
}

/** The start has enough to do; after it, once an hour is often enough. */
const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;

/** Prunes a running log from time to time. A failure is logged and tried again an hour later; nothing is lost by it. */
export class AutomaticRetention {
  readonly #log: EventLog;
  readonly #dataDir: string;
  readonly #settings: RetentionSettings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #cancel: () => void;
  #running: Promise<void> | undefined;

  constructor(log: EventLog, dataDir: string, settings: RetentionSettings, clock: Clock, logger: Logger) {
    this.#log = log;
    this.#dataDir = dataDir;
    this.#settings = settings;
    this.#clock = clock;
    this.#logger = logger;
    this.#cancel = clock.after(FIRST_MS, () => this.#run());
  }

  /** Ends what is under way, and begins nothing new. */
  async stop(): Promise<void> {
    this.#cancel();
    await this.#running;
  }

  #run(): void {
    this.#cancel = this.#clock.after(EVERY_MS, () => this.#run());
    this.#running = this.#prune();
  }

  async #prune(): Promise<void> {
    const { folder, ...request } = this.#settings;
    try {
      const { plan, file } = await pruneRunning(this.#log, this.#dataDir, request, folder, this.#clock.now());
      if (file !== undefined) this.#logger.info({ from: plan.from, to: plan.to, file }, 'log.pruned');
    } catch (error) {
      const code = isCoded(error) ? error.code : 'HF_INTERNAL';
      this.#logger.error({ code, err: error }, 'log.prune_failed');
    }
  }
}

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
  if (running.has(log)) throw new HostError('HF_LOG_PRUNING', { dir: dataDir });
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
    onEnd: (reason) => reject(new HostError('HF_LOG_ARCHIVE', { reason })),
  });
  worker.ref();
  return promise;
}
