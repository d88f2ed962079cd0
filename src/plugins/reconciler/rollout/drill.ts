import { setTimeout as delay } from 'node:timers/promises';
import { operatorName } from '../../../core/host/operations/ask.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { type AlertState, askUnit, type Look, look } from './look.ts';

const LOOK_MS = 500;
/** How long the instance may take to be asked to go on, when the command itself is interrupted. */
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

type Sides = 'rule' | 'monitor';

/**
 * Stops the reconciler, waits until both alerts have changed state, starts it, and waits until both have recovered. It is
 * started again whatever happens here; where this process is killed, the instance does so by itself.
 *
 * @param waitMs for each of the two changes
 * @param told hears each moment when it comes
 */
export async function drill(
  command: CommandContext,
  waitMs: number,
  told: (moment: Moment) => void,
): Promise<DrillResult> {
  const began = Date.now();
  const timeline: Moment[] = [];
  const tell = (what: string) => {
    const moment = { at: new Date().toISOString(), afterMs: Date.now() - began, what };
    timeline.push(moment);
    told(moment);
  };
  const by = operatorName();
  const start = async () => {
    const { dataDir, json, print, note, terminal, config, registrations, actors } = command;
    const signal = AbortSignal.timeout(RESUME_MS);
    const own = { dataDir, json, print, note, terminal, config, registrations, actors, signal };
    return askUnit(own, '/resume', { by });
  };
  const before = await look(command);
  for (const side of ['rule', 'monitor'] as const) {
    if (before[side].state !== 'well') {
      return { ok: false, verdict: `not begun: ${before[side].text}`, timeline };
    }
  }
  const forMs = Math.min(waitMs + 60_000, 1_800_000);
  const { until } = await askUnit(command, '/pause', { by, forMs });
  try {
    tell(`stopped, until ${until} at the latest`);
    const missing = await changed(command, 'wrong', waitMs, tell);
    if (missing)
      return { ok: false, verdict: `stopped, and not both alerts changed state: ${missing}`, timeline };
  } finally {
    command.terminal.progress('');
    await start();
    tell('started');
  }
  const missing = await changed(command, 'well', waitMs, tell);
  if (missing) return { ok: false, verdict: `started, and not both alerts recovered: ${missing}`, timeline };
  return { ok: true, verdict: 'both alerts changed state and recovered', timeline };
}

/** @returns what did not change in time, in words */
async function changed(
  command: CommandContext,
  wanted: AlertState['state'],
  waitMs: number,
  tell: (what: string) => void,
): Promise<string | undefined> {
  const open = new Set<Sides>(['rule', 'monitor']);
  const end = Date.now() + waitMs;
  for (;;) {
    let now: Look;
    try {
      now = await look(command);
    } catch (error) {
      // An interrupted command ends well elsewhere; a drill that was broken off has proven nothing.
      if (command.signal.aborted) return 'it was broken off';
      throw error;
    }
    for (const side of open) {
      if (now[side].state !== wanted) continue;
      open.delete(side);
      tell(now[side].text);
    }
    if (open.size === 0) return undefined;
    const waits = [...open].map((side) => now[side].text).join('; ');
    if (wanted === 'wrong' && now.unit.state !== 'paused') return `it was started by somebody else; ${waits}`;
    if (Date.now() > end) return waits;
    command.terminal.progress(`${Math.ceil((end - Date.now()) / 1_000)} s left: ${waits}`);
    await delay(LOOK_MS, undefined, { signal: command.signal }).catch(() => {}); // the loop looks at it
  }
}
