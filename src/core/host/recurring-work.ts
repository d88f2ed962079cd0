import type { Clock } from '../kernel/clock.ts';

export interface RecurringWorkOptions<T> {
  readonly clock: Clock;
  /** When the first run comes, milliseconds from now; unless set, only `run` begins one. */
  readonly firstMs?: number;
  /** When the next run comes after one that succeeded, milliseconds; unless set, only `run` begins one. */
  readonly everyMs?: number;
  /** When the next run comes after one that failed, milliseconds. @param failures in a row, from 1 */
  readonly retryMs: (failures: number) => number;
  /** @param signal aborted at a stop */
  readonly work: (signal: AbortSignal) => Promise<T>;
  /** A run failed, and not because of a stop. @param failures in a row, from 1 */
  readonly onFailure: (error: unknown, failures: number) => void;
}

/** Work that is done again and again, one run at a time, until it is stopped. A run that failed is tried again. */
export class RecurringWork<T> {
  readonly #options: RecurringWorkOptions<T>;
  readonly #stop = new AbortController();
  #running: Promise<T> | undefined;
  #cancelNext: (() => void) | undefined;
  #failures = 0;

  constructor(options: RecurringWorkOptions<T>) {
    this.#options = options;
    this.#next(options.firstMs);
  }

  /** Whether a run is to come by itself. */
  get isDue(): boolean {
    return this.#cancelNext !== undefined;
  }

  /**
   * Runs now in place of the next time, or waits for the run that is under way.
   *
   * @throws what `work` throws; the reason of the stop
   */
  run(): Promise<T> {
    this.#running ??= this.#once().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Begins nothing new, and resolves when what is under way is over: `work` has to heed its signal. Never rejects. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelNext?.();
    this.#cancelNext = undefined;
    await this.#running?.catch(() => {});
  }

  async #once(): Promise<T> {
    const { work, everyMs, retryMs, onFailure } = this.#options;
    const { signal } = this.#stop;
    signal.throwIfAborted();
    this.#cancelNext?.();
    this.#cancelNext = undefined;
    try {
      const result = await work(signal);
      this.#failures = 0;
      this.#next(everyMs);
      return result;
    } catch (error) {
      this.#failures += 1;
      if (!signal.aborted) onFailure(error, this.#failures);
      this.#next(retryMs(this.#failures));
      throw error;
    }
  }

  #next(ms: number | undefined): void {
    if (ms === undefined || this.#stop.signal.aborted) return;
    this.#cancelNext = this.#options.clock.after(ms, () => {
      this.run().catch(() => {}); // `onFailure` has been called
    });
  }
}
