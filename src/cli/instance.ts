import { isSocketBase } from '../core/host/http/addresses.ts';
import type { Place } from '../core/host/http/contract.ts';
import { HOST, runsOf } from '../core/host/lifecycle/records.ts';
import type { StoppedReports } from '../core/host/plugin/definition.ts';
import { storageFact } from '../core/host/retention/growth.ts';
import { notedSettings } from '../core/host/retention/settings.ts';
import { type RuntimeFile, readRuntimeFile } from '../core/host/runtime/runtime-file.ts';
import { recover } from '../core/kernel/actors/recover.ts';
import type { ActorState } from '../core/kernel/actors/transition.ts';
import { jumpsOf } from '../core/kernel/clock-jumps.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';
import { parseActorRef } from '../core/kernel/ids.ts';
import { isObject } from '../core/kernel/json.ts';
import { lockedBy } from '../core/kernel/log/lock.ts';
import { CLOCK } from '../core/kernel/log/record.ts';
import { SqliteReader } from '../core/kernel/log/sqlite-reader.ts';

/** An instance that works answers at once. */
const HEALTH_TIMEOUT_MS = 5_000;
const HEALTH_LIMIT_BYTES = 16 * 1_048_576;

/** A run that has ended. */
export interface LastRun {
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
  /** The name of a signal, another reason, or `killed` when the process could not record one. */
  readonly reason: string;
  /** ISO 8601; absent when it was killed. */
  readonly stoppedAt?: string;
}

export interface PluginState {
  readonly name: string;
  readonly state: string;
  readonly reason?: string;
}

export interface LogState {
  readonly state?: string;
  readonly seq: number;
  readonly durableSeq: number;
  readonly reason?: string;
}

/** What is known of the instance on a data folder, running or not. */
export interface Instance {
  /**
   * - `ok`, `degraded`, `failing`: it runs, in its own words.
   * - `starting`: the folder is locked, and `runtime.json` does not say yet where to ask.
   * - `unreachable`: the folder is locked, and the health page does not answer; or it cannot be read.
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
  readonly plugins?: readonly PluginState[];
  readonly log?: LogState;
  /** What plugins report, by name: on the health page, or from the log of a stopped instance. */
  readonly facts?: Facts;
  /** How the run before the present one, or the last one, ended. */
  readonly lastStop?: LastRun;
  /** Why the health page, or the log, could not be read. */
  readonly reason?: string;
  /** What keeps a running one from being healthy. */
  readonly reasons?: readonly string[];
}

type Facts = Readonly<Record<string, unknown>>;

interface InspectOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly signal: AbortSignal;
  /** What plugins report of a stopped instance that left actors of these types; called only when nothing runs. */
  readonly reports: (types: Iterable<string>) => Promise<StoppedReports>;
}

/**
 * Inspects the instance on a data folder: asks the health page of a running one, reads the log that a stopped one left.
 * It starts nothing and changes nothing, and what is wrong there is its answer, never an exception.
 */
export async function inspectInstance(
  dataDir: string,
  { now, signal, reports }: InspectOptions,
): Promise<Instance> {
  let pid: number | undefined;
  try {
    pid = lockedBy(dataDir);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const reason = isCoded(error) ? `${text} ${error.remedy}` : `the folder cannot be read (${text})`;
    return { state: 'unreachable', running: false, dataDir, reason };
  }
  if (pid === undefined) {
    return { state: 'stopped', running: false, dataDir, ...(await readLastRun(dataDir, now, reports)) };
  }
  const file = readRuntimeFile(dataDir);
  if (!file) return { state: 'starting', running: true, dataDir, ...(pid > 0 && { pid }) };
  const { startedAt, version, surfaces } = file;
  const instance = { running: true, dataDir, pid: file.pid, startedAt, version, surfaces };
  const console = surfaces.console;
  if (console === undefined) {
    const reason = 'no plugin serves a health page; the console plugin does';
    return { state: 'unreachable', ...instance, reason };
  }
  return { ...instance, ...(await askHealth(console, file.pid, signal)) };
}

/** Fields of the health page that say which run it is; all others are facts. */
const OF_THE_RUN: ReadonlySet<string> = new Set(['pid', 'startedAt', 'version', 'boot', 'bootedAt']);

/**
 * Asks `GET /healthz` of a running instance.
 *
 * @param place of its console surface
 * @param pid of the instance: another process may have taken the port meanwhile
 */
async function askHealth(
  place: Place,
  pid: number,
  signal: AbortSignal,
): Promise<Pick<Instance, 'state' | 'reason' | 'reasons' | 'plugins' | 'log' | 'facts' | 'lastStop'>> {
  const [{ HttpCallError, HttpClient }, { ownSurface }] = await Promise.all([
    import('../core/host/http/client.ts'),
    import('../core/host/http/own-surface.ts'),
  ]);
  const http = new HttpClient({
    timeoutMs: HEALTH_TIMEOUT_MS,
    answerLimit: HEALTH_LIMIT_BYTES,
  });
  const page = `${place.url}${isSocketBase(place.url) ? ' /healthz' : '/healthz'}`;
  const unreachable = (reason: string) => ({ state: 'unreachable', reason: `${page} ${reason}` }) as const;
  let body: unknown;
  try {
    body = (await http.call({ ...ownSurface(place), url: '/healthz', signal })).json();
  } catch (error) {
    if (error instanceof HttpCallError) return unreachable(`does not answer (${error.reason})`);
    if (!isCoded(error)) throw error;
    return unreachable(`is not asked: ${error.what}`);
  }
  if (!isHealth(body)) return unreachable('does not answer with a health page');
  if (body.pid !== pid) return unreachable('is answered by another process');
  const { status, reasons, plugins, log, lastStop, ...others } = body;
  const facts = Object.fromEntries(Object.entries(others).filter(([name]) => !OF_THE_RUN.has(name)));
  return {
    state: status,
    ...(reasons && { reasons }),
    plugins,
    log,
    facts,
    ...(lastStop && { lastStop }),
  };
}

/** The health page of the instance with that pid: the same program wrote it, so its inner fields are trusted. */
interface Health {
  readonly status: 'ok' | 'degraded' | 'failing';
  readonly pid: number;
  readonly plugins: readonly PluginState[];
  readonly log: LogState;
  readonly reasons?: readonly string[];
  readonly lastStop?: LastRun;
  readonly [fact: string]: unknown;
}

function isHealth(body: unknown): body is Health {
  return (
    isObject(body) &&
    (body.status === 'ok' || body.status === 'degraded' || body.status === 'failing') &&
    typeof body.pid === 'number' &&
    Array.isArray(body.plugins) &&
    isObject(body.log) &&
    (body.reasons === undefined || Array.isArray(body.reasons)) &&
    (body.lastStop === undefined || isObject(body.lastStop))
  );
}

/** Reads from the log how the last run ended, and what plugins report of the states that it left. */
async function readLastRun(
  dataDir: string,
  now: number,
  reports: InspectOptions['reports'],
): Promise<Pick<Instance, 'lastStop' | 'facts' | 'log' | 'reason'>> {
  let log: SqliteReader | undefined;
  try {
    log = new SqliteReader(dataDir);
    const { states, newest } = recover(log);
    const lastStop = lastStopOf(states.get(HOST));
    const types = new Set([...states.keys()].map((ref) => parseActorRef(ref).type));
    const facts = Object.entries(await reports(types)).flatMap(([name, stopped]) => {
      const fact = stopped(states, now);
      return fact === undefined ? [] : [[name, fact] as const];
    });
    const jumps = jumpsOf(states.get(CLOCK.actor));
    if (newest.seq > 0)
      facts.push(['storage', storageFact(log, dataDir, notedSettings(dataDir), now, jumps)]);
    return {
      log: { seq: newest.seq, durableSeq: newest.seq },
      facts: Object.fromEntries(facts),
      ...(lastStop && { lastStop }),
    };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return error.code === 'HF_LOG_MISSING' ? { facts: {} } : { reason: `${error.message} ${error.remedy}` };
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
    startedAt: new Date(current.startedAt).toISOString(),
    reason,
    ...(stoppedAt !== undefined && { stoppedAt: new Date(stoppedAt).toISOString() }),
  };
}
