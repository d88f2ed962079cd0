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
