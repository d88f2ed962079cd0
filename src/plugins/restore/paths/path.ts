import type { Clock } from '../../../core/kernel/clock.ts';
import type { Bounds, Drill, Source } from '../../../machines/restore/drill-shapes.ts';
import type { ProgressBoard } from '../progress.ts';

/** What every step is given beside its parameters. */
export interface StepContext {
  readonly signal: AbortSignal;
  readonly progress: ProgressBoard;
}

/** What the steps of every path stand on. */
export interface PathSettings {
  readonly clock: Clock;
  readonly readyMs: number;
  readonly pollMs: number;
}

/** One way from a backup to an instance that can be compared. Each step may be run again with the same drill. */
export interface RestorePath {
  /** @throws HF_RESTORE_NOTHING */
  choose(drill: Drill, context: StepContext): Promise<Source>;
  /** @returns the place for people; its URL, where it is one already */
  prepare(
    drill: Drill,
    source: Source,
    context: StepContext,
  ): Promise<{ readonly place: string; readonly url?: string; readonly copied?: Bounds }>;
  /** @returns where the restored collection is served */
  recover(drill: Drill, source: Source, url: string | undefined, context: StepContext): Promise<string>;
  /** Removes all that a drill of this path made; that it is gone already is no error. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Scratch instances that nobody needs: left by earlier runs, or expired. */
  leftovers(signal: AbortSignal): Promise<readonly string[]>;
}
