import { setTimeout as delay } from 'node:timers/promises';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { type AlertPlaces, type AlertState, monitorState, ruleState } from './alert-reading.ts';
import type { UnitView } from './unit.ts';
import { askUnit, pauseSwitch, systemdSwitch, type UnitSwitch } from './unit-switch.ts';

const POLL_MS = 500;

/** A moment of a drill. */
export interface Moment {
  readonly at: string;
  /** Since its beginning, milliseconds. */
  readonly afterMs: number;
  readonly what: string;
}

export interface DrillResult {
  /** `unknown` when it was not begun, because an alert could not be read, or was not well before. */
  readonly state: 'ok' | 'fail' | 'unknown';
  readonly verdict: string;
  readonly timeline: readonly Moment[];
}

/** What a drill needs beside the running instance. */
export interface DrillSettings {
  readonly places: AlertPlaces;
  /** The unit of systemd to stop; unless set, that of the instance, or a pause where no unit runs it. */
  readonly unit?: string | undefined;
  /** For each of the two changes, milliseconds. */
  readonly waitMs: number;
}

type AlertSource = 'rule' | 'monitor';

/** Where the monitor of an instance's beats is read. */
export interface Beats {
  readonly place: string;
  readonly monitor: string;
}

/** Both alerts as they are now. @param beats of the instance, which can't be asked while it is stopped */
async function readAlerts(
  places: AlertPlaces,
  beats: Beats | undefined,
  signal: AbortSignal,
): Promise<Record<AlertSource, AlertState>> {
  const monitor: Promise<AlertState> = beats
    ? monitorState(places.statusUrl ?? beats.place, beats.monitor, signal)
    : Promise.resolve({ state: 'unknown', text: 'no plugin sends beats' });
  const [rule, beat] = await Promise.all([ruleState(places, signal), monitor]);
  return { rule, monitor: beat };
}

/**
 * Stops the reconciler, waits until both alerts have changed state, starts it, and waits until both have recovered. The
 * reconciler is started again after every outcome. When this process is killed, the instance or systemd starts it.
 *
 * @param onMoment called with each moment when it comes
 * @throws HF_CONTROL_UNREACHABLE no reconciler runs; HF_RECONCILER_UNIT systemd does not stop or start the unit
 */
export async function drill(
  command: CommandContext,
  settings: DrillSettings,
  onMoment: (moment: Moment) => void,
): Promise<DrillResult> {
  const { places, waitMs } = settings;
  const began = Date.now();
  const timeline: Moment[] = [];
  const record = (what: string) => {
    const moment = { at: new Date().toISOString(), afterMs: Date.now() - began, what };
    timeline.push(moment);
    onMoment(moment);
  };
  const view = await askUnit(command);
  const unit = switchOf(command, settings.unit ?? view.service);
  if (unit.endsProcess && places.alerts === command.dataDir) {
    const verdict =
      'not begun: the rule is evaluated by the unit that would be stopped, or by an instance that --alerts names';
    return { state: 'unknown', verdict, timeline };
  }
  const look = () => readAlerts(places, view.beats, command.signal);
  const before = await look();
  for (const side of ['rule', 'monitor'] as const) {
    const { state, text } = before[side];
    if (state === 'well') continue;
    return { state: 'unknown', verdict: `not begun: ${text}`, timeline };
  }
  record(await unit.stop(Math.min(waitMs + 60_000, 1_800_000)));
  try {
    const missing = await changed(command, look, 'wrong', unit, waitMs, record);
    if (missing !== undefined)
      return { state: 'fail', verdict: `stopped, and not both alerts changed state: ${missing}`, timeline };
  } finally {
    command.terminal.progress('');
    await unit.start();
    record('started');
  }
  const missing = await changed(command, look, 'well', unit, waitMs, record);
  if (missing !== undefined)
    return { state: 'fail', verdict: `started, and not both alerts recovered: ${missing}`, timeline };
  return { state: 'ok', verdict: 'both alerts changed state and recovered', timeline };
}

const switchOf = (command: CommandContext, service: UnitView['service']): UnitSwitch =>
  service === undefined ? pauseSwitch(command) : systemdSwitch(command, service);

/** @returns a text about what did not change in time; undefined when everything did */
async function changed(
  command: CommandContext,
  look: () => Promise<Record<AlertSource, AlertState>>,
  wanted: AlertState['state'],
  unit: UnitSwitch,
  waitMs: number,
  record: (what: string) => void,
): Promise<string | undefined> {
  const open = new Set<AlertSource>(['rule', 'monitor']);
  const end = Date.now() + waitMs;
  for (;;) {
    let now: Record<AlertSource, AlertState>;
    try {
      now = await look();
      if (wanted === 'wrong' && !(await unit.isStopped())) return 'it was started by somebody else';
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
    if (Date.now() > end) return waits;
    command.terminal.progress(`${Math.ceil((end - Date.now()) / 1_000)} s left: ${waits}`);
    await delay(POLL_MS, undefined, { signal: command.signal }).catch(() => {}); // the loop checks the signal
  }
}
