/** What the paths of a drill share: their steps, their progress, and polling. */
import type { ScratchStores } from '../../core/contracts/memory-store.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Copied, Drill, Source } from '../../machines/restore/drill-shapes.ts';

/** What every step gets beside its parameters. */
export interface StepContext {
  readonly signal: AbortSignal;
  readonly progress: ProgressBoard;
}

/** Settings of every path; times are milliseconds. */
export interface PathSettings {
  readonly clock: Clock;
  readonly readyMs: number;
  readonly pollMs: number;
}

/** A way from a backup to an instance that can be compared. Each step may be run again with the same drill. */
export interface RestorePath {
  /** @throws HF_RESTORE_NOTHING */
  choose(drill: Drill, context: StepContext): Promise<Source>;
  /** @returns the place for people, and its URL if it has one at this step */
  prepare(
    drill: Drill,
    source: Source,
    context: StepContext,
  ): Promise<{ readonly place: string; readonly url?: string; readonly copied?: Copied }>;
  /** @returns where the restored collection is served */
  recover(drill: Drill, source: Source, url: string | undefined, context: StepContext): Promise<string>;
  /** Removes everything that a drill of this path made; it is no error when that is gone already. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Ids of scratch instances that nobody needs: left by earlier runs, or expired. */
  leftovers(signal: AbortSignal): Promise<readonly string[]>;
}

/** Leftovers at a start: all instances in this process's own folder; elsewhere those that have expired. */
export async function scratchLeftovers(
  scratch: ScratchStores,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const now = clock.now();
  const found = await scratch.list(signal);
  return found.filter(({ expiresAt }) => scratch.kind === 'embedded' || expiresAt <= now).map(({ id }) => id);
}

/** How far the running phase is. */
export interface Progress {
  readonly text: string;
  readonly done?: number;
  readonly total?: number;
  readonly unit?: 'points' | 'bytes';
  /** Epoch milliseconds. */
  readonly since: number;
  /** Estimated by the pace so far, milliseconds. */
  readonly leftMs?: number;
}

type Extent = Pick<Progress, 'done' | 'total' | 'unit'>;

/** Progress of the running phase. It is not recorded: only decisions are. */
export class ProgressBoard {
  readonly #clock: Clock;
  #now: Progress | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get now(): Progress | undefined {
    const { done = 0, total = 0, since = 0 } = this.#now ?? {};
    if (this.#now === undefined || done === 0 || total < done) return this.#now;
    const leftMs = Math.round(((this.#clock.now() - since) / done) * (total - done));
    return { ...this.#now, leftMs };
  }

  begin(text: string, extent: Extent = {}): void {
    this.#now = { text, ...extent, since: this.#clock.now() };
  }

  at(done: number): void {
    if (this.#now) this.#now = { ...this.#now, done };
  }

  end(): void {
    this.#now = undefined;
  }
}

/** Waits, unless the signal is aborted first. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/**
 * Polls until something is there.
 *
 * @param poll gives `undefined` for not yet; an error ends the wait
 * @returns undefined when the time is over
 */
export async function until<T>(
  poll: () => Promise<T | undefined>,
  {
    clock,
    everyMs,
    withinMs,
    signal,
  }: {
    readonly clock: Clock;
    readonly everyMs: number;
    readonly withinMs: number;
    readonly signal: AbortSignal;
  },
): Promise<T | undefined> {
  const end = clock.monotonic() + withinMs;
  for (;;) {
    signal.throwIfAborted();
    const found = await poll();
    if (found !== undefined) return found;
    if (clock.monotonic() + everyMs > end) return undefined;
    await pause(clock, everyMs, signal);
  }
}
