/** Reads the two alerts over the reconciler, wherever they run: the rule over its gauge, and the monitor of its beats. */
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';

/** The state of one of the two alerts. `absent` is an alert that is not there, `unknown` one that could not be looked at. */
export interface AlertState {
  readonly state: 'well' | 'wrong' | 'waiting' | 'absent' | 'unknown';
  readonly text: string;
}

/** Where the alerts are read. */
export interface AlertPlaces {
  /** Data folder of the instance that evaluates the rule, or the base of its health page. */
  readonly alerts: string;
  /** File with the bearer token of that page. */
  readonly tokenFile?: string | undefined;
  /** Whether that token may go to another machine in plaintext. */
  readonly insecure?: boolean | undefined;
  /** Base of the monitor's status pages, where it is not that of the pushes. */
  readonly statusUrl?: string | undefined;
}

/** The rule over the reconciler's gauge, and the operation that lists what rules found. */
const RULE = 'router-ula-reconcile';
const ALERTS_PATH = '/alerts/list';
const pages = new HttpClient({ timeoutMs: 5_000, answerLimit: 1_048_576 });

const unknown = (text: string): AlertState => ({ state: 'unknown', text });

/** The state of the rule, from the instance on a data folder or from another host's health page. */
export async function ruleState(
  { alerts, tokenFile, insecure }: AlertPlaces,
  signal: AbortSignal,
): Promise<AlertState> {
  const isUrl = /^https?:/.test(alerts);
  try {
    const rules = isUrl
      ? await verdictsAt(alerts, { tokenFile, insecure }, signal)
      : await verdictsOf(alerts, signal);
    if (typeof rules === 'string') return unknown(rules);
    const rule = rules.find((each) => isObject(each) && each.rule === RULE);
    if (isObject(rule)) return ruleOf(rule);
    return unknown(`${alerts} evaluates no rule ${RULE}: name with --alerts the instance that does`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HttpCallError) return unknown(`${alerts} gives no usable answer: ${error.reason}`);
    if (isCoded(error)) return unknown(error.what.replace(/\.$/, ''));
    throw error;
  }
}

async function verdictsOf(dataDir: string, signal: AbortSignal): Promise<readonly unknown[]> {
  const { rules } = await askInstance<{ rules?: unknown }>(
    { dataDir, signal },
    ALERTS_PATH,
    {},
    'it runs no alerts',
  );
  return Array.isArray(rules) ? rules : [];
}

/** @returns a text where the page does not say */
async function verdictsAt(
  base: string,
  { tokenFile, insecure }: Pick<AlertPlaces, 'tokenFile' | 'insecure'>,
  signal: AbortSignal,
): Promise<readonly unknown[] | string> {
  const authorization = tokenFile === undefined ? undefined : `Bearer ${readTokenFile(tokenFile)}`;
  const answer = await pages.call({
    url: `${base.replace(/\/+$/, '')}/healthz`,
    insecure,
    signal,
    headers: { accept: 'application/json', ...(authorization !== undefined && { authorization }) },
  });
  // A failing instance answers 503, with the same page; earlier versions did so when degraded, too.
  const page = answer.status === 200 || answer.status === 503 ? answer.json() : undefined;
  if (!isObject(page)) return `the health page of ${base} answers HTTP ${answer.status}`;
  const { alerts } = page;
  return isObject(alerts) && Array.isArray(alerts.verdicts) ? alerts.verdicts : `${base} runs no alerts`;
}

function ruleOf({ verdict, value, unseen }: Record<string, unknown>): AlertState {
  if (unseen !== undefined) return unknown(`${RULE} saw nothing: ${String(unseen)}`);
  const found = value === undefined ? 'no data' : `router.ula_reconcile.up = ${String(value)}`;
  const state = verdict === 'firing' ? 'wrong' : verdict === 'ok' && value !== undefined ? 'well' : 'waiting';
  return { state, text: `${RULE} is ${String(verdict)} (${found})` };
}

/** Reads the monitor's status page, which Uptime Kuma and the embedded monitor serve in the same form. */
export async function monitorState(place: string, monitor: string, signal: AbortSignal): Promise<AlertState> {
  const url = `${place.replace(/\/+$/, '')}/api/status-page/heartbeat/${monitor}`;
  try {
    const answer = await pages.call({ url, signal, headers: { accept: 'application/json' } });
    if (answer.status === 404) return { state: 'absent', text: `there is no status page ${monitor}` };
    if (answer.status !== 200) return unknown(`the status page ${monitor} answers HTTP ${answer.status}`);
    const page = answer.json();
    return isObject(page) ? pageState(page, monitor) : unknown(`the status page ${monitor} answers no JSON`);
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    signal.throwIfAborted();
    return unknown(`the status page ${monitor} gives no usable answer: ${error.reason}`);
  }
}

function pageState({ heartbeatList }: Record<string, unknown>, monitor: string): AlertState {
  const lists = isObject(heartbeatList) ? Object.values(heartbeatList) : [];
  // Uptime Kuma answers 200 and an empty list for a page that it does not have.
  if (lists.length === 0) return { state: 'absent', text: `no monitor is on the status page ${monitor}` };
  const last = lists.map((list) => (Array.isArray(list) ? (list.at(-1) as unknown) : undefined));
  const states = last.map((beat) => (isObject(beat) ? beat.status : undefined));
  if (states.includes(0)) return { state: 'wrong', text: `${monitor} is DOWN` };
  if (states.every((each) => each === 1)) return { state: 'well', text: `${monitor} is up` };
  return { state: 'waiting', text: `${monitor} waits for a beat` };
}
