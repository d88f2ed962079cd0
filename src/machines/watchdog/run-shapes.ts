/** What goes into and comes out of the watchdog: context, events and effect parameters. */

/** Something that is not as it must be. */
export interface Failure {
  readonly check: 'database' | 'ingest' | 'engine' | 'result';
  /** What was asked, and what came back, as parts of a sentence. */
  readonly asked: string;
  readonly found: string;
}

export type Outcome = 'delivered' | 'undelivered' | 'unhealthy' | 'killed';

/** How a run ended, as every surface tells it. */
export interface RunReport {
  readonly outcome: Outcome;
  /** What is printed, in order. */
  readonly lines: readonly string[];
  /** Of the one-shot command; it says how the run went, and nothing of health. */
  readonly exitCode: number;
  /** When the run began, epoch milliseconds. */
  readonly startedAt: number;
}

export interface WatchdogContext {
  readonly startedAt: number;
  /** Since when each check fails, ISO 8601, by check. */
  readonly failing: Readonly<Record<string, string>>;
  readonly stale: number;
  readonly drift: number;
  /** How long the checks took, milliseconds. */
  readonly tookMs: number;
  readonly last?: RunReport | undefined;
  /** When the newest heartbeat was delivered, and with which words. */
  readonly deliveredAt?: number | undefined;
  readonly deliveredMsg?: string | undefined;
}

export type WatchdogEvent =
  /** The runtime starts. */
  | { type: 'START'; at: number }
  | { type: 'RUN'; at: number }
  /** @param time `at` as ISO 8601, for a machine has no calendar; stale in seconds */
  | {
      type: 'CHECKED';
      at: number;
      time: string;
      tookMs: number;
      stale: number;
      drift: number;
      failures: readonly Failure[];
    }
  | { type: 'PUSHED'; at: number; status: number }
  | { type: 'PUSH_REFUSED'; at: number; status: number; msg?: string; body: string; exitStatus: number }
  | { type: 'PUSH_FAILED'; at: number; reason: string; exitStatus: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string };

export interface Args {
  readonly context: WatchdogContext;
  readonly event: WatchdogEvent;
}

/** As `activeDeadlineSeconds` of the job. */
export const DEADLINE_MS = 120_000;
/** The first run waits until what it asks has started. */
export const WARM_UP_MS = 10_000;
/** As `timeout` exits. */
export const KILLED_EXIT = 124;
