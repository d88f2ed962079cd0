import { type ClockSet, moved } from '../clock-set.ts';
import type { Alert } from '../effect.ts';
import { movedPings, type PingSums } from './pings.ts';

/** Settings, context and events of a push monitor, and the sentences about its state. Times are milliseconds. */

/** When beats are expected, and when reminders are sent. */
export interface MonitorSettings {
  readonly name: string;
  /** Name for people. */
  readonly title: string;
  /** The status page on which it stands. */
  readonly slug: string;
  /** The next beat is expected within this time; after it the monitor is late. */
  readonly intervalMs: number;
  /** A late monitor is down after this: retries times their interval, and at least `LAST_CALL_MS`. */
  readonly graceMs: number;
  /** Time between reminders while it is down and nobody has acknowledged that. */
  readonly remindMs: number;
}

/** A change of the monitor's state. */
export interface Change {
  readonly at: number;
  readonly to: 'waiting' | 'up' | 'late' | 'down' | 'paused';
  readonly why: string;
}

/** Why the sender's last run sent no beat. */
export interface Trouble {
  readonly at: number;
  /** Its checks failed, its push was not delivered, or it was killed. */
  readonly outcome: 'unhealthy' | 'undelivered' | 'killed';
  readonly text: string;
}

export interface Acknowledgement {
  readonly at: number;
  readonly until: number;
  readonly by: string;
  readonly note?: string;
}

export interface MonitorContext extends MonitorSettings {
  readonly beats: number;
  readonly lastAt?: number | undefined;
  readonly lastMsg?: string | undefined;
  readonly lastPing?: number | undefined;
  readonly pings?: PingSums | undefined;
  /** Durations of the waits since the last beat: a restart of this monitor may have lengthened them. */
  readonly waitMs: number;
  readonly lateMs: number;
  /** When these waits began. */
  readonly armedAt: number;
  /** When the present state began. */
  readonly since: number;
  /** Restarts of this monitor since the last beat. */
  readonly restarts: number;
  /** The reason that the sender gave, while its own report makes the monitor down. */
  readonly reported?: string | undefined;
  readonly trouble?: Trouble | undefined;
  readonly ack?: Acknowledgement | undefined;
  readonly reminders: number;
  readonly changes: readonly Change[];
}

export type MonitorEvent =
  /** A push came. `up` is false for every status but exactly `up`. */
  | { type: 'BEAT'; at: number; up: boolean; msg: string; ping?: number }
  /** The runtime starts: beats sent meanwhile were not received. */
  | { type: 'WATCH'; at: number; settings: MonitorSettings }
  | { type: 'TROUBLE'; trouble: Trouble }
  | { type: 'ACK'; at: number; by: string; note?: string; forMs: number }
  | { type: 'PAUSE'; at: number; by: string }
  | { type: 'UNPAUSE'; at: number; by: string }
  /** The monitor is no longer listed. */
  | { type: 'RELEASE'; at: number }
  | ClockSet;

export interface Args {
  readonly context: MonitorContext;
  readonly event: MonitorEvent;
}

/** Shortest time between late and down: beats that wait in the sockets of a stopped process are still received. */
export const LAST_CALL_MS = 500;
/** Restarts that extend the wait for one beat: a runtime that restarts all the time must not hide that no beats come. */
export const RESTARTS_FORGIVEN = 3;
export const CHANGES_KEPT = 50;
/** Characters of a message, and of a reason. */
export const TEXT_KEPT = 250;

/** `600 s`, `10 min`, `3 h`, `2 d`: the largest unit that divides it. */
export function span(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  for (const [unit, name] of [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
  ] as const) {
    if (seconds >= unit * 2 && seconds % unit === 0) return `${seconds / unit} ${name}`;
  }
  return `${seconds} s`;
}

/** Why the monitor is down, in one sentence: the absence of beats, the sender's last run, its last beat. */
export function diagnosis(context: MonitorContext): string {
  const { reported, lastAt, lastMsg, trouble, restarts, intervalMs, graceMs, beats } = context;
  const parts: string[] = [];
  if (reported !== undefined) parts.push(`the sender says it is down: ${reported}`);
  else if (lastAt === undefined)
    parts.push(`no beat has ever come, and one is due every ${span(intervalMs)}`);
  else parts.push(`no beat for ${span(intervalMs + graceMs)}`);
  if (trouble) parts.push(TROUBLES[trouble.outcome](trouble.text));
  else if (reported === undefined)
    parts.push('nothing says why: the sender, or its connection to this monitor, may be gone');
  if (beats > 0 && reported === undefined) parts.push(`the last good beat said: ${lastMsg || '(nothing)'}`);
  if (restarts > 0) parts.push(`this monitor itself was restarted meanwhile (${restarts}×)`);
  return parts.join('; ');
}

const TROUBLES = {
  unhealthy: (text: string) => `its last run was made, and found: ${text}`,
  undelivered: (text: string) => `its last run was healthy, and its push did not arrive: ${text}`,
  killed: (text: string) => `its last run did not end by itself: ${text}`,
} as const;

/** The settings in an event, if it has any. */
export function settingsOf(event: MonitorEvent): Partial<MonitorContext> {
  return event.type === 'WATCH' && typeof event.settings === 'object' ? event.settings : {};
}

/** The time of an event; a timer has none, and fired when it was due. @param dueMs after the waits began */
export function timeOf({ context, event }: Args, dueMs: number): number {
  return 'at' in event && Number.isFinite(event.at) ? event.at : context.armedAt + dueMs;
}

/** The clock was set: what is shown of the past, and since when the next beat is waited for. */
export function followClock({ context, event }: Args): Partial<MonitorContext> {
  if (event.type !== 'CLOCK_SET' || !Number.isFinite(event.byMs)) return {};
  const { byMs } = event;
  const { ack, trouble, pings, changes } = context;
  return {
    ...moved(context, byMs, 'lastAt', 'armedAt', 'since'),
    ...(ack && { ack: { ...ack, ...moved(ack, byMs, 'at', 'until') } }),
    ...(trouble && { trouble: { ...trouble, ...moved(trouble, byMs, 'at') } }),
    ...(pings && { pings: movedPings(pings, byMs) }),
    changes: changes.map((change) => ({ ...change, ...moved(change, byMs, 'at') })),
  };
}

/** Notes a change of state. */
export function changed(
  context: MonitorContext,
  at: number,
  to: Change['to'],
  why: string,
): Partial<MonitorContext> {
  const change = { at, to, why: why.slice(0, TEXT_KEPT) };
  return { since: at, changes: [...context.changes, change].slice(-CHANGES_KEPT) };
}

/** Notes that it is up. A short lateness is forgotten: monitors that are late often would fill the list with nothing else. */
export function risen(context: MonitorContext, at: number): Partial<MonitorContext> {
  const [before, last] = context.changes.slice(-2);
  if (context.changes.at(-1)?.to === 'up') return {};
  if (before?.to === 'up' && last?.to === 'late') {
    return { since: before.at, changes: context.changes.slice(0, -1) };
  }
  return changed(context, at, 'up', context.lastMsg ?? '');
}

/** The alert that it is down. @param reminder how many alerts have been sent before */
export function firing(context: MonitorContext, reminder = 0): Alert {
  const { name, title, slug } = context;
  const again = reminder > 0 ? `still DOWN (reminder ${reminder})` : 'DOWN';
  return {
    name: 'uptime-monitor.down',
    severity: 'critical',
    text: `${title} is ${again}: ${diagnosis(context)}.`,
    labels: { monitor: name, slug, state: 'firing', ...(reminder > 0 && { reminder: String(reminder) }) },
  };
}

/** The alert that the condition is over. */
export function resolved({ name, title, slug }: MonitorContext, why: string): Alert {
  return {
    name: 'uptime-monitor.down',
    severity: 'info',
    text: `${title} ${why}.`,
    labels: { monitor: name, slug, state: 'resolved' },
  };
}
