import type { Clock } from '../../kernel/clock.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { Logger } from '../logging/logger.ts';
import { pruneRunning } from './online.ts';
import type { PruneRequest } from './plan.ts';

/** What a runtime lets go by itself. */
export interface RetentionSettings extends PruneRequest {
  /** Absolute path; where archives go. */
  readonly folder: string;
}

/** The start has enough to do; after it, once an hour is often enough. */
const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;

/** Prunes a running log from time to time. A failure is told and tried again an hour later; nothing is lost by it. */
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
