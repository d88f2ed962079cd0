/** Settings, context and events of the machine `leg.ts`. */

/** The address that a leg must have, and the intervals at which it is checked. Times are milliseconds. */
export interface LegSettings {
  /** Interface name, e.g. `eth1.10`; the app cannot change it, unlike the display name. */
  readonly intf: string;
  /** For people. */
  readonly label: string;
  /** The static address with its prefix length, in the one form that readings use too. */
  readonly address: string;
  /** Nobody has confirmed this leg for the router yet: a missing address is reported and not added. */
  readonly observes?: boolean;
  /** Quiet time after an event before the config is read, because a daemon may publish before it saves. */
  readonly settleMs: number;
  /** From a reading that found the leg whole after an event to the second look. */
  readonly secondLookMs: number;
  /** Base of the back-off; doubled with each failed try. */
  readonly retryMs: number;
  /** Failed tries after which a person is alerted. */
  readonly maxTries: number;
  /** Between two tries while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Between two readings when nothing happens. */
  readonly resyncMs: number;
}

/** Parameters of the effect `reconciler.leg_recovered`: the leg has its address again. */
export interface LegRecovered {
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  readonly ncid: string;
  /** The address had been missing; otherwise only the router could not be read. */
  readonly missing: boolean;
  /** A person had been alerted. */
  readonly alerted: boolean;
  /** Failed tries before this one. */
  readonly tries: number;
  /** When the event that began the round was published (epoch ms), where its message has a time. */
  readonly eventAt?: number;
}

export interface LegContext extends LegSettings {
  /** Another reading that is due: one for an event that came while busy, or the second look after a reading. */
  readonly due?: 'reading' | 'secondLook' | undefined;
  /** Events of this round. A round lasts from its first event to the reading that shows the leg whole. */
  readonly events: number;
  /** When the event that began this round was published (epoch ms). */
  readonly eventAt?: number | undefined;
  /** When the first event that came while busy was published (epoch ms). */
  readonly nextEventAt?: number | undefined;
  /** The ncid of the newest reading. */
  readonly lastNcid?: string | undefined;
  /** The address was found missing and has not been seen since. */
  readonly missing?: true | undefined;
  /** Failed tries of this round. */
  readonly tries: number;
  /** Why the last try failed. */
  readonly lastError?: string | undefined;
  /** 0 to 1, from the newest outcome that failed: machines make no random numbers. */
  readonly jitter: number;
  /** Length of the next back-off, and of the pause after giving up. */
  readonly pauseMs: number;
  readonly restMs: number;
  /** A person was alerted of the fault, and not yet of its end. */
  readonly alerted?: true | undefined;
  /** How often a missing address came back, and how often a race for the ncid was lost, since the actor began. */
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
  | { type: 'effect.done'; effect: string }
  | { type: 'effect.lost'; effect: string };

/** The argument of guards, actions and effect parameters. */
export interface Args {
  readonly context: LegContext;
  readonly event: LegEvent;
}
