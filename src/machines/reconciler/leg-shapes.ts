/** What goes into and comes out of a leg's reconciler: settings, context, events and effect parameters. */

/** What a leg is held to, and how patiently. Times are milliseconds. */
export interface LegSettings {
  /** Interface name, e.g. `eth1.10`; the app cannot change it, unlike the display name. */
  readonly intf: string;
  /** For people. */
  readonly label: string;
  /** The static address with its prefix length, in the one form that readings use too. */
  readonly address: string;
  /** Quiet time after an event before the config is read: a daemon may publish before it saves. */
  readonly settleMs: number;
  /** From a reading that found the leg whole after an event to the second look. */
  readonly secondLookMs: number;
  /** Base of the back-off; doubled with each failed try. */
  readonly retryMs: number;
  /** Failed tries after which a person is told. */
  readonly maxTries: number;
  /** Between two tries while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Between two readings when nothing happens. */
  readonly resyncMs: number;
}

/** Effect `router.leg_recovered`: what is known when a leg is whole again. */
export interface LegRecovered {
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  readonly ncid: string;
  /** The address had been missing; otherwise only the router could not be read. */
  readonly missing: boolean;
  /** A person had been told of the trouble. */
  readonly alerted: boolean;
  /** Failed tries before this one. */
  readonly tries: number;
  /** When the event that began the story was published (epoch ms), where it said so. */
  readonly heardAt?: number;
}

export interface LegContext extends LegSettings {
  /** What the leg still owes to an event: a reading of its own, or the second look after one. */
  readonly owes?: 'read' | 'look' | undefined;
  /** Events heard in this story. */
  readonly heard: number;
  /** When the event that began the story was published (epoch ms), and the first one that came while busy. */
  readonly heardAt?: number | undefined;
  readonly owedAt?: number | undefined;
  /** The ncid of the newest reading. */
  readonly lastNcid?: string | undefined;
  /** The address was found missing and has not been seen since. */
  readonly missing?: true | undefined;
  /** Failed tries of this story. */
  readonly tries: number;
  /** Why the last try failed. */
  readonly lastError?: string | undefined;
  /** 0 to 1, brought by the newest outcome that failed: a machine has no dice. */
  readonly jitter: number;
  /** How long the next back-off takes, and the rest after giving up. */
  readonly pauseMs: number;
  readonly restMs: number;
  /** A person has been told, and not yet that it is over. */
  readonly alerted?: true | undefined;
  /** How often a missing address came back, and how often a race for the ncid was lost; ever. */
  readonly healed: number;
  readonly conflicts: number;
}

export type LegEvent =
  | { type: 'CHANGED'; channel?: string; intf?: string; ncid?: string; transID?: string; at?: number }
  | { type: 'RESYNC'; reason: string }
  | { type: 'CONFIGURE'; leg: LegSettings }
  | { type: 'RELEASE' }
  | { type: 'LEG_READ'; ncid: string; addresses: readonly string[] }
  | { type: 'LEG_ABSENT'; ncid: string }
  | { type: 'UNREACHABLE'; reason: string }
  | { type: 'ADDED'; ncid: string; posted: readonly string[] }
  | { type: 'CONFLICT'; jitter: number }
  | { type: 'PENDING' }
  | { type: 'REFUSED'; errors: readonly string[]; jitter: number }
  | { type: 'UNKNOWN'; reason: string; jitter: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string };

/** What XState hands to a function that computes. */
export interface Args {
  readonly context: LegContext;
  readonly event: LegEvent;
}

/** The settings of a leg that nobody names. */
export const legDefaults = {
  settleMs: 25,
  secondLookMs: 1_000,
  retryMs: 50,
  maxTries: 5,
  waitMs: 5_000,
  resyncMs: 240_000,
} as const;
