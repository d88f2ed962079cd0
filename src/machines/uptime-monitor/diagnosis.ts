import type { Alert } from '../effect.ts';

/** What goes into and comes out of a push monitor: settings, context and events. Times are milliseconds. */

/** How beats are expected, and who is told of their absence. */
export interface MonitorSettings {
  readonly name: string;
  /** For people. */
  readonly title: string;
  /** The status page on which it stands. */
  readonly slug: string;
  /** Within this time of a beat the next one is expected: then it is late. */
  readonly intervalMs: number;
  /** A late one is down after this: retries times their interval, at least a last call. */
  readonly graceMs: number;
  /** Between two reminders while it is down and nobody has acknowledged it. */
  readonly remindMs: number;
}

/** A change of what the monitor says, newest last. */
export interface Change {
  readonly at: number;
  readonly to: 'waiting' | 'up' | 'late' | 'down' | 'paused';
  readonly why: string;
}

/** What the sender's last run came to, when no beat came of it. */
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
  /** Waits of this silence: an own restart may have lengthened them. */
  readonly waitMs: number;
  readonly lateMs: number;
  /** When the waits of this silence began. */
  readonly armedAt: number;
  /** Since when it is as it is. */
  readonly since: number;
  /** Own restarts within this silence. */
  readonly restarts: number;
  /** The sender's own word, while it is what makes the monitor down. */
  readonly told?: string | undefined;
  readonly trouble?: Trouble | undefined;
  readonly ack?: Acknowledgement | undefined;
  readonly reminders: number;
  readonly changes: readonly Change[];
}

export type MonitorEvent =
  /** A push came. `up` is false for every status but exactly `up`. */
  | { type: 'BEAT'; at: number; up: boolean; msg: string; ping?: number }
  /** The runtime starts: what came while it was away was not heard. */
  | { type: 'WATCH'; at: number; settings: MonitorSettings }
  | { type: 'TROUBLE'; trouble: Trouble }
  | { type: 'ACK'; at: number; by: string; note?: string; forMs: number }
  | { type: 'PAUSE'; at: number; by: string }
  | { type: 'UNPAUSE'; at: number; by: string }
  /** It is no longer listed. */
  | { type: 'RELEASE'; at: number };

export interface Args {
  readonly context: MonitorContext;
  readonly event: MonitorEvent;
}

/** The shortest time between late and down: what already waits in the sockets of a process that was stopped is heard. */
export const LAST_CALL_MS = 500;
/** Own restarts that lengthen one silence: a runtime that restarts all the time must not hide that nobody beats. */
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

/** Why it is down, everything that is known in one sentence: the absence, the sender's last run, its last beat. */
export function diagnosis(context: MonitorContext): string {
  const { told, lastAt, lastMsg, trouble, restarts, intervalMs, graceMs, beats } = context;
  const parts: string[] = [];
  if (told !== undefined) parts.push(`the sender says it is down: ${told}`);
  else if (lastAt === undefined)
    parts.push(`no beat has ever come, and one is due every ${span(intervalMs)}`);
  else parts.push(`no beat for ${span(intervalMs + graceMs)}`);
  if (trouble) parts.push(TROUBLES[trouble.outcome](trouble.text));
  else if (told === undefined)
    parts.push('nothing says why: the sender, or its way to this monitor, may be gone');
  if (beats > 0 && told === undefined) parts.push(`the last good beat said: ${lastMsg || '(nothing)'}`);
  if (restarts > 0) parts.push(`this monitor itself was restarted meanwhile (${restarts}×)`);
  return parts.join('; ');
}

const TROUBLES = {
  unhealthy: (text: string) => `its last run was made, and found: ${text}`,
  undelivered: (text: string) => `its last run was healthy, and its push did not arrive: ${text}`,
  killed: (text: string) => `its last run did not end by itself: ${text}`,
} as const;

/** The settings that an event brings, if it brings any. */
export function settingsOf(event: MonitorEvent): Partial<MonitorContext> {
  return event.type === 'WATCH' && typeof event.settings === 'object' ? event.settings : {};
}

/** When the event came; a timer does not say, and came when it was due. */
export function timeOf({ context, event }: Args, dueMs: number): number {
  return 'at' in event && Number.isFinite(event.at) ? event.at : context.armedAt + dueMs;
}

/** It is something else from now on. */
export function changed(
  context: MonitorContext,
  at: number,
  to: Change['to'],
  why: string,
): Partial<MonitorContext> {
  const change = { at, to, why: why.slice(0, TEXT_KEPT) };
  return { since: at, changes: [...context.changes, change].slice(-CHANGES_KEPT) };
}

/** It is up. That it was late for a moment is forgotten: senders with little to spare would leave room for nothing else. */
export function risen(context: MonitorContext, at: number): Partial<MonitorContext> {
  const [before, last] = context.changes.slice(-2);
  if (context.changes.at(-1)?.to === 'up') return {};
  if (before?.to === 'up' && last?.to === 'late') {
    return { since: before.at, changes: context.changes.slice(0, -1) };
  }
  return changed(context, at, 'up', context.lastMsg ?? '');
}

/** Its absence, for whoever is told. @param reminder how many times it has been told before */
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

/** That nobody need look any more. */
export function resolved({ name, title, slug }: MonitorContext, why: string): Alert {
  return {
    name: 'uptime-monitor.down',
    severity: 'info',
    text: `${title} ${why}.`,
    labels: { monitor: name, slug, state: 'resolved' },
  };
}
