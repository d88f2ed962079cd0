/** What goes into and comes out of an alert and its outbox. Times are epoch milliseconds. */

/** A rung of the ladder: whom to tell, and how long after the one before, while nobody has acknowledged it. */
export interface Step {
  readonly to: readonly string[];
  readonly afterMs: number;
}

/** What is told to a receiver. */
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
  readonly runbook?: string;
}

export interface Acknowledgement {
  readonly by: string;
  readonly at: number;
  readonly until: number;
  readonly note?: string;
}

export type Told = Omit<Notice, 'state' | 'since'>;

/** Somebody raised it, and these are the rungs that the configuration gives it. */
export interface Raised {
  readonly type: 'RAISED';
  readonly at: number;
  /** The record that raised it: asked for twice after a crash, it is heard once. */
  readonly cause: string;
  readonly kind: 'firing' | 'resolved' | 'event';
  /** Its source says it again on purpose. */
  readonly again?: boolean;
  readonly told: Told;
  readonly steps: readonly Step[];
  /** After the last rung, as long as nobody has acknowledged it. */
  readonly remindMs: number;
  /** It is to be silent until then. */
  readonly silentUntil?: number;
}

export type AlertEvent =
  | Raised
  | {
      readonly type: 'ACKNOWLEDGE';
      readonly at: number;
      readonly by: string;
      readonly forMs: number;
      readonly note?: string;
    }
  /** The configuration gives it other rungs, as when a receiver has got its address. */
  | {
      readonly type: 'LADDER';
      readonly at: number;
      readonly steps: readonly Step[];
      readonly remindMs: number;
    }
  | { readonly type: 'SILENCE'; readonly at: number; readonly until: number }
  | { readonly type: 'UNSILENCE'; readonly at: number };

export interface AlertContext {
  readonly told?: Told | undefined;
  readonly steps: readonly Step[];
  readonly remindMs: number;
  /** Rungs climbed. */
  readonly climbed: number;
  /** Receivers that know of it, to be told when it is over. */
  readonly informed: readonly string[];
  readonly since: number;
  /** The time of the newest event that set a delay. */
  readonly at: number;
  /** Of the newest raises. */
  readonly causes: readonly string[];
  /** Raises since it began, or since it was last told. */
  readonly count: number;
  readonly ack?: Acknowledgement | undefined;
  readonly silentUntil?: number | undefined;
}

export interface AlertArgs {
  readonly context: AlertContext;
  readonly event: AlertEvent;
}

/** A notice in a receiver's queue. */
export interface Queued {
  /** Of the effect that asked for it: queued twice after a crash, it is sent once. */
  readonly id: string;
  readonly at: number;
  readonly notice: Notice;
}

/** Raises that are known when they come again. */
export const CAUSES_KEPT = 16;
/** A one-time event that comes again within this time is counted and not told again. */
export const SAME_EVENT_MS = 3_600_000;
