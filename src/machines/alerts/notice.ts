/** What receivers are notified of, and how a notice waits in a receiver's queue. */

/** What a receiver is notified of. Times are epoch milliseconds. */
export interface Notice {
  /** `event` happened once; the others are of a condition that lasts. */
  readonly state: 'firing' | 'reminder' | 'resolved' | 'event';
  readonly name: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly title: string;
  readonly text: string;
  readonly labels: Readonly<Record<string, string>>;
  /** When the condition began. */
  readonly since: number;
  readonly value?: number;
  readonly threshold?: string;
  readonly window?: string;
  /** Hosts and instances of what was measured. */
  readonly places?: readonly string[];
  /** What a person does first. */
  readonly firstStep?: string;
  readonly runbook?: string;
  /** The alert's actor, which hears that the notice was taken. */
  readonly alert?: string;
  /** The host and the instance that notifies. */
  readonly host?: string;
  readonly instance?: string;
  /** The record that raised it, in words. */
  readonly cause?: string;
  /** By which a person acts on it. It is added to what is sent and never recorded, for who has it may act. */
  readonly link?: string;
}

/** What an alert says, whatever its state. */
export type AlertContent = Omit<Notice, 'state' | 'since' | 'alert' | 'host' | 'instance' | 'cause' | 'link'>;

/** A notice in a receiver's queue. */
export interface Queued {
  /** The id of the effect that queued it, so that an effect that runs twice after a crash is sent once. */
  readonly id: string;
  readonly at: number;
  /** By how much the clock was set ahead since, milliseconds. */
  readonly movedMs?: number;
  readonly notice: Notice;
}

/** Parameters of `alerts.notify`: the receivers of a notice, and the record that raised its alert. */
export interface Notification {
  readonly to: readonly string[];
  readonly notice: Notice;
  readonly record?: number;
}
