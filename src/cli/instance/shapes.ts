import type { RouterTransaction } from '../../core/contracts/router-transaction.ts';
import type { RuntimeFile } from '../../core/host/runtime/runtime-file.ts';

/** A run that is over. */
export interface LastRun {
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
  /** The name of a signal, another reason, or `killed` when the process did not get to say one. */
  readonly reason: string;
  /** ISO 8601; absent when it was killed. */
  readonly stoppedAt?: string;
}

/** What the health page says. */
export interface Health {
  readonly state: 'ok' | 'degraded' | 'failing';
  /** What keeps it from being `ok`, by name. */
  readonly reasons?: readonly string[];
  readonly plugins: readonly { readonly name: string; readonly state: string; readonly reason?: string }[];
  readonly log: {
    readonly state?: string;
    readonly seq: number;
    readonly durableSeq: number;
    readonly reason?: string;
  };
  readonly transaction?: RouterTransaction;
  readonly facts: Instance['facts'] & object;
  readonly lastStop?: LastRun;
}

/** What is known of the instance on a data folder. */
export interface Instance {
  /**
   * - `ok`, `degraded`, `failing`: it runs, in its own words.
   * - `starting`: the folder is taken, and nobody has said yet where to ask.
   * - `unreachable`: the folder is taken, and the health page does not answer; or it cannot be looked into.
   * - `stopped`: nothing runs.
   */
  readonly state: 'ok' | 'degraded' | 'failing' | 'starting' | 'unreachable' | 'stopped';
  readonly running: boolean;
  readonly dataDir: string;
  readonly pid?: number;
  /** ISO 8601. */
  readonly startedAt?: string;
  readonly version?: string;
  readonly surfaces?: RuntimeFile['surfaces'];
  readonly plugins?: Health['plugins'];
  readonly log?: Health['log'];
  readonly transaction?: RouterTransaction;
  /** Other facts that plugins contribute to the health page, by name. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** How the run before the present one, or the last one, ended. */
  readonly lastStop?: LastRun;
  /** Why the health page, or the log, does not say. */
  readonly reason?: string;
  /** What keeps a running one from being healthy, by name. */
  readonly reasons?: readonly string[];
}
