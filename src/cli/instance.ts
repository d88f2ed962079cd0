import {
  CONFIG_ACTOR,
  type RouterTransaction,
  routerTransaction,
} from '../core/contracts/router-transaction.ts';
import { HttpCallError, HttpClient } from '../core/host/http/client.ts';
import { HOST, runsOf } from '../core/host/lifecycle/actor.ts';
import { type RuntimeFile, readRuntimeFile } from '../core/host/runtime/runtime-file.ts';
import { recover } from '../core/kernel/actors/recover.ts';
import type { ActorState } from '../core/kernel/actors/state.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../core/kernel/json.ts';
import { lockedBy } from '../core/kernel/log/lock.ts';
import { SqliteReader } from '../core/kernel/log/sqlite-reader.ts';

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

/** An instance that works answers at once. */
const http = new HttpClient({ timeoutMs: 3_000, answerLimit: 16 * 1_048_576, transport: 'builtin' });

/**
 * Asks `GET /healthz` of a running instance.
 *
 * @param url of its console surface
 * @param pid of the instance: another process may have taken the port meanwhile
 */
export async function askHealth(
  url: string,
  pid: number,
  signal: AbortSignal,
): Promise<Health | { readonly reason: string }> {
  let body: unknown;
  try {
    body = (await http.call({ url: `${url}/healthz`, signal })).json();
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    return { reason: `${url}/healthz does not answer (${error.reason})` };
  }
  if (!isHealth(body)) return { reason: `${url}/healthz answers something else` };
  if (body.pid !== pid) return { reason: `${url}/healthz is answered by another process` };
  const {
    status,
    reasons,
    plugins,
    log,
    transaction,
    lastStop,
    pid: _,
    startedAt: __,
    version: ___,
    ...facts
  } = body;
  return {
    state: status,
    ...(Array.isArray(reasons) && { reasons: reasons.filter((text) => typeof text === 'string') }),
    plugins,
    log,
    facts,
    ...(isObject(transaction) && { transaction: transaction as unknown as RouterTransaction }),
    ...(isObject(lastStop) && { lastStop: lastStop as unknown as LastRun }),
  };
}

type Body = Pick<Health, 'plugins' | 'log'> & {
  readonly status: Health['state'];
  readonly pid: number;
  readonly [fact: string]: unknown;
};

function isHealth(body: unknown): body is Body {
  return (
    isObject(body) &&
    (body.status === 'ok' || body.status === 'degraded' || body.status === 'failing') &&
    Array.isArray(body.plugins) &&
    isObject(body.log)
  );
}

/** What the log that was left behind says: how the last run ended, and what the next one will take up. */
export async function readLastRun(
  dataDir: string,
  now: number,
): Promise<Pick<Instance, 'lastStop' | 'transaction' | 'log' | 'reason'>> {
  let log: SqliteReader | undefined;
  try {
    log = new SqliteReader(dataDir);
    const { states, newest } = recover(log);
    const lastStop = lastStopOf(states.get(HOST));
    const transaction = routerTransaction(states.get(CONFIG_ACTOR), now);
    return {
      log: { seq: newest.seq, durableSeq: newest.seq },
      ...(lastStop && { lastStop }),
      ...(transaction && { transaction }),
    };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return error.code === 'HF_LOG_MISSING' ? {} : { reason: `${error.message} ${error.remedy}` };
  } finally {
    log?.close();
  }
}

function lastStopOf(state: ActorState | undefined): LastRun | undefined {
  const { current, ending } = runsOf(state);
  if (!current) return undefined;
  const { reason = 'killed', stoppedAt } = ending ?? {};
  return {
    ...current,
    startedAt: iso(current.startedAt),
    reason,
    ...(stoppedAt !== undefined && { stoppedAt: iso(stoppedAt) }),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
