import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { ElapsedClock } from '../elapsed-clock.ts';
import { SparseLines } from '../nats/connection.ts';

/** Tells a ledger that cannot be used from one that cannot be reached for the time of an election. */
export class LedgerTrouble {
  readonly #ttlMs: number;
  readonly #elapsed: ElapsedClock;
  readonly #logger: Logger;
  readonly #lines: SparseLines;
  /** When the first failure was since it was used last. */
  #since: number | undefined;
  #error: Error | undefined;

  /** @param ttlMs of a lease, milliseconds: no election lasts so long */
  constructor(ttlMs: number, elapsed: ElapsedClock, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#ttlMs = ttlMs;
    this.#elapsed = elapsed;
    this.#logger = logger;
    this.#lines = new SparseLines(clock);
  }

  /** Why the ledger cannot be used; undefined while it can, or an election may be all. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** The ledger was read, and what was due was written. */
  passed(): void {
    if (this.#error) this.#logger.info('cluster.ledger_goes_on');
    this.#since = undefined;
    this.#error = undefined;
    this.#lines.reset();
  }

  /** It could not be read or written. */
  note(error: unknown): void {
    const now = this.#elapsed.monotonic();
    const isForeign = isCoded(error, 'HF_CLUSTER_LEDGER');
    if (!isForeign && this.#since === undefined)
      this.#logger.warn({ err: error }, 'cluster.ledger_unreachable');
    this.#since ??= now;
    if (!isForeign && now - this.#since < this.#ttlMs) return;
    // What keeps it may be another thing by then, e.g. that the ledger can be read, and not written.
    if (this.#lines.isDue()) this.#logger.error({ err: error }, 'cluster.ledger_refused');
    this.#error = error instanceof Error ? error : new Error(String(error));
  }
}
