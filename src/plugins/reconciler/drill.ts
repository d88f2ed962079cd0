import { setTimeout as delay } from 'node:timers/promises';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import {
  askInstance,
  type InstanceAddress,
  operatorName,
} from '../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { isObject } from '../../core/kernel/json.ts';
import { NO_RECONCILER, UNIT_PATH, type UnitView } from './unit.ts';

const POLL_MS = 500;
/** How long resuming may take when the command itself is interrupted, milliseconds. */
const RESUME_MS = 10_000;

/** A moment of a drill. */
export interface Moment {
  readonly at: string;
  /** Since its beginning, milliseconds. */
  readonly afterMs: number;
  readonly what: string;
}

export interface DrillResult {
  readonly ok: boolean;
  readonly verdict: string;
  readonly timeline: readonly Moment[];
}

type AlertSource = 'rule' | 'monitor';

/**
 * Stops the reconciler, waits until both alerts have changed state, starts it, and waits until both have recovered. The
 * reconciler is started again after every outcome. When this process is killed, the instance starts it by itself.
 *
 * @param waitMs for each of the two changes
 * @param onMoment called with each moment when it comes
 */
export async function drill(
  command: CommandContext,
  waitMs: number,
  onMoment: (moment: Moment) => void,
): Promise<DrillResult> {
  const began = Date.now();
  const timeline: Moment[] = [];
  const record = (what: string) => {
    const moment = { at: new Date().toISOString(), afterMs: Date.now() - began, what };
    timeline.push(moment);
    onMoment(moment);
  };
  const by = operatorName();
  const start = async () => {
    const { dataDir } = command;
    return askUnit({ dataDir, signal: AbortSignal.timeout(RESUME_MS) }, '/resume', { by });
  };
  const before = await observe(command);
  for (const side of ['rule', 'monitor'] as const) {
    if (before[side].state !== 'well') {
      return { ok: false, verdict: `not begun: ${before[side].text}`, timeline };
    }
  }
  const forMs = Math.min(waitMs + 60_000, 1_800_000);
  const { until } = await askUnit(command, '/pause', { by, forMs });
  try {
    record(`stopped, until ${until} at the latest`);
    const missing = await changed(command, 'wrong', waitMs, record);
    if (missing)
      return { ok: false, verdict: `stopped, and not both alerts changed state: ${missing}`, timeline };
  } finally {
    command.terminal.progress('');
    await start();
    record('started');
  }
  const missing = await changed(command, 'well', waitMs, record);
  if (missing) return { ok: false, verdict: `started, and not both alerts recovered: ${missing}`, timeline };
  return { ok: true, verdict: 'both alerts changed state and recovered', timeline };
}

/** @returns a text about what did not change in time; undefined when everything did */
async function changed(
  command: CommandContext,
  wanted: AlertState['state'],
  waitMs: number,
  record: (what: string) => void,
): Promise<string | undefined> {
  const open = new Set<AlertSource>(['rule', 'monitor']);
  const end = Date.now() + waitMs;
  for (;;) {
    let now: Observation;
    try {
      now = await observe(command);
    } catch (error) {
      // An interrupted drill has proven nothing, so it does not count as passed.
      if (command.signal.aborted) return 'it was interrupted';
      throw error;
    }
    for (const side of open) {
      if (now[side].state !== wanted) continue;
      open.delete(side);
      record(now[side].text);
    }
    if (open.size === 0) return undefined;
    const waits = [...open].map((side) => now[side].text).join('; ');
    if (wanted === 'wrong' && now.unit.state !== 'paused') return `it was started by somebody else; ${waits}`;
    if (Date.now() > end) return waits;
    command.terminal.progress(`${Math.ceil((end - Date.now()) / 1_000)} s left: ${waits}`);
    await delay(POLL_MS, undefined, { signal: command.signal }).catch(() => {}); // the loop checks the signal
  }
}

/** The rule over the reconciler's gauge, and the operation that lists what rules found. */
const RULE = 'router-ula-reconcile';
const ALERTS_PATH = '/alerts/list';
const statusPage = new HttpClient({ timeoutMs: 5_000, answerLimit: 1_048_576 });

/** The state of one of the two alerts. An alert that waits for data, or is unknown, is neither ok nor firing. */
export interface AlertState {
  readonly state: 'well' | 'wrong' | 'waiting' | 'unknown';
  readonly text: string;
}

export interface Observation {
  readonly unit: UnitView;
  /** The rule over the gauge. */
  readonly rule: AlertState;
  /** The monitor of the beats. */
  readonly monitor: AlertState;
}

export async function observe(command: CommandContext): Promise<Observation> {
  const unit = await askUnit(command);
  return { unit, rule: await ruleState(command), monitor: await monitorState(unit, command.signal) };
}

/** @throws HF_CONTROL_UNREACHABLE */
export function askUnit(command: InstanceAddress, verb = '', body: object = {}): Promise<UnitView> {
  return askInstance<UnitView>(command, `${UNIT_PATH}${verb}`, body, NO_RECONCILER);
}

async function ruleState(command: CommandContext): Promise<AlertState> {
  const { rules } = await askInstance<{ rules?: unknown }>(command, ALERTS_PATH, {}, 'it runs no alerts');
  const rule = (Array.isArray(rules) ? rules : []).find((each) => isObject(each) && each.rule === RULE);
  if (!isObject(rule)) return { state: 'unknown', text: `there is no rule ${RULE}` };
  const { verdict, value, unseen } = rule;
  if (unseen !== undefined) return { state: 'unknown', text: `${RULE} saw nothing: ${String(unseen)}` };
  const found = value === undefined ? 'no data' : `router.ula_reconcile.up = ${String(value)}`;
  const state = verdict === 'firing' ? 'wrong' : verdict === 'ok' && value !== undefined ? 'well' : 'waiting';
  return { state, text: `${RULE} is ${String(verdict)} (${found})` };
}

/** Reads the monitor's status page, which Uptime Kuma and the embedded monitor serve in the same form. */
async function monitorState({ beats }: UnitView, signal: AbortSignal): Promise<AlertState> {
  if (!beats) return { state: 'unknown', text: 'no plugin sends beats' };
  const { place, monitor } = beats;
  const url = `${place.replace(/\/+$/, '')}/api/status-page/heartbeat/${monitor}`;
  try {
    const answer = await statusPage.call({ url, signal, headers: { accept: 'application/json' } });
    if (answer.status !== 200)
      return { state: 'unknown', text: `the status page ${monitor} answers HTTP ${answer.status}` };
    const page = answer.json();
    if (page !== undefined) return stateOf(page, monitor);
    return { state: 'unknown', text: `the status page ${monitor} answers no JSON` };
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    const text = `the status page ${monitor} gives no usable answer: ${error.reason}`;
    return { state: 'unknown', text };
  }
}

function stateOf(page: unknown, monitor: string): AlertState {
  const lists = isObject(page) && isObject(page.heartbeatList) ? Object.values(page.heartbeatList) : [];
  const last = lists.map((list) => (Array.isArray(list) ? (list.at(-1) as unknown) : undefined));
  const states = last.map((beat) => (isObject(beat) ? beat.status : undefined));
  if (states.includes(0)) return { state: 'wrong', text: `${monitor} is DOWN` };
  if (states.length > 0 && states.every((each) => each === 1))
    return { state: 'well', text: `${monitor} is up` };
  return { state: 'waiting', text: `${monitor} waits for a beat` };
}
