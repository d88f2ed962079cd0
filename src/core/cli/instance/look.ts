import type { RouterTransaction } from '../../adapters/router-transaction.ts';
import { lockedBy } from '../../log/lock.ts';
import { type RuntimeFile, readRuntimeFile } from '../../runtime/runtime-file.ts';
import { askHealth, type Health } from './health.ts';
import { type LastRun, readLastRun } from './last-run.ts';

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

/** Looks at a data folder. Never throws for what it finds there: that is the answer. */
export async function lookAt(dataDir: string, now: number, signal: AbortSignal): Promise<Instance> {
  let pid: number | undefined;
  try {
    pid = lockedBy(dataDir);
  } catch (error) {
    const reason = `the folder cannot be looked into (${error instanceof Error ? error.message : error})`;
    return { state: 'unreachable', running: false, dataDir, reason };
  }
  if (pid === undefined)
    return { state: 'stopped', running: false, dataDir, ...(await readLastRun(dataDir, now)) };
  const file = readRuntimeFile(dataDir);
  const said = file && {
    pid: file.pid,
    startedAt: file.startedAt,
    version: file.version,
    surfaces: file.surfaces,
  };
  const known = { running: true, dataDir, ...said };
  if (!file) return { state: 'starting', ...known, ...(pid > 0 && { pid }) };
  const console = file.surfaces.console?.url;
  if (console === undefined) {
    return {
      state: 'unreachable',
      ...known,
      reason: 'no plugin serves a health page (the console plugin would)',
    };
  }
  const health = await askHealth(console, file.pid, signal);
  if ('reason' in health) return { state: 'unreachable', ...known, reason: health.reason };
  return { ...known, ...health };
}
