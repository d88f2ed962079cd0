import { request } from 'undici';
import { askInstance } from '../../../core/host/operations/ask.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { UNIT_PATH, type UnitView } from '../unit.ts';

/** The rule over the reconciler's gauge, and the operation that lists what rules found. */
const RULE = 'router-ula-reconcile';
const ALERTS_PATH = '/alerts/list';
const DEADLINE_MS = 5_000;
const LARGEST = 1_048_576;

/** How one of the two alerts is; one that waits for data, or is unknown, is neither well nor wrong. */
export interface AlertState {
  readonly state: 'well' | 'wrong' | 'waiting' | 'unknown';
  readonly text: string;
}

export interface Look {
  readonly unit: UnitView;
  /** Of the gauge. */
  readonly rule: AlertState;
  /** Of the beats. */
  readonly monitor: AlertState;
}

export async function look(command: CommandContext): Promise<Look> {
  const unit = await askUnit(command);
  return { unit, rule: await ruleState(command), monitor: await monitorState(unit, command.signal) };
}

/** @throws HF_CONTROL_UNREACHABLE */
export function askUnit(command: CommandContext, verb = '', body: object = {}): Promise<UnitView> {
  return askInstance<UnitView>(command, `${UNIT_PATH}${verb}`, body, 'it runs no reconciler');
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

/** By the read side of the monitor's status page, which Uptime Kuma and the embedded one both have. */
async function monitorState({ beats }: UnitView, signal: AbortSignal): Promise<AlertState> {
  if (!beats) return { state: 'unknown', text: 'no plugin sends beats' };
  const { place, monitor } = beats;
  const url = `${place.replace(/\/+$/, '')}/api/status-page/heartbeat/${monitor}`;
  try {
    const over = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const { statusCode, body } = await request(url, {
      signal: over,
      headers: { accept: 'application/json' },
    });
    const text = await body.text();
    if (statusCode !== 200)
      return { state: 'unknown', text: `the status page ${monitor} answers HTTP ${statusCode}` };
    return stateOf(text.length > LARGEST ? undefined : JSON.parse(text), monitor);
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    return {
      state: 'unknown',
      text: `the status page ${monitor} gives no usable answer: ${reason.slice(0, 200)}`,
    };
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
