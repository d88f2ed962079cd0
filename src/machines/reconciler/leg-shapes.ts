/** Settings, context and events of the machine `leg.ts`. */
import type { ClockSet } from '../clock-set.ts';

/** A field of the config that is held to a value, in the place of an interface's address. */
export interface KeptField {
  /** Keys from the root of the config. */
  readonly path: readonly string[];
  /** JSON. */
  readonly value: unknown;
  /** Whether the field has exactly this value, or is a list that has at least these entries. */
  readonly match: 'equals' | 'contains';
}

/** The address that a leg must have, and the intervals at which it is checked. Times are milliseconds. */
export interface LegSettings {
  /** Interface name, e.g. `eth1.10`; the app cannot change it, unlike the display name. Of a kept field its path as text. */
  readonly intf: string;
  /** For people. */
  readonly label: string;
  /** The static address with its prefix length, in the one form that readings use too. Of a kept field its value, canonical JSON. */
  readonly address: string;
  /** Set when a field of the config is held, and not an interface's address. It has no link that could be looked at. */
  readonly keep?: KeptField;
  /** Nobody has confirmed this leg for the router yet: a missing address is reported and not added. */
  readonly observes?: boolean;
  /** Quiet time after an event before the config is read, because a daemon may publish before it saves. */
  readonly settleMs: number;
  /** From a reading that found the leg whole after an event to the second look. */
  readonly secondLookMs: number;
  /** Base of the back-off; doubled with each failed try. */
  readonly retryMs: number;
  /** Lost races in a row after which a person is alerted. */
  readonly maxTries: number;
  /** Between two tries while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Base of the back-off while the router cannot be read or does not take the write, and its upper limit. */
  readonly backOffMs: number;
  readonly backOffLimitMs: number;
  /** How long the router may refuse the address before a person is alerted. */
  readonly alertAfterMs: number;
  /** How long a configured address may be missing on the link. */
  readonly linkSettleMs: number;
  /** What is done about an address that is configured and not on the link, besides the alert. */
  readonly remedy: 'alert' | 'reapply';
  /** Between two readings when nothing happens. */
  readonly resyncMs: number;
  /** The same of a whole leg, where looks at it are made outside and sent (`LOOKED`); `resyncMs` without them. */
  readonly wholeMs?: number;
}

/** The longest time in which looks at a whole leg are only counted, milliseconds. */
export const REPORT_MS = 3_600_000;

/** The default settings of a leg. */
export const legDefaults = {
  settleMs: 25,
  secondLookMs: 1_000,
  retryMs: 50,
  maxTries: 5,
  waitMs: 5_000,
  backOffMs: 5_000,
  backOffLimitMs: 60_000,
  alertAfterMs: 60_000,
  linkSettleMs: 10_000,
  remedy: 'alert',
  resyncMs: 240_000,
} as const;

/** Parameters of the effect `reconciler.read_leg`. */
export type ReadLeg = Pick<LegSettings, 'intf' | 'keep'>;

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
  /** Failed tries before this one, lost races included. */
  readonly tries: number;
  /** When the event that began the round was published (epoch ms), where its message has a time. */
  readonly eventAt?: number;
}

/** A fault of a leg that a person is alerted of. */
export type LegFault = 'gave_up' | 'leg_absent' | 'write_refused' | 'refused_by_name';

/** Whether the link has the address. `missing` since a time (epoch ms); `unknown` when it could not be looked at. */
export type LinkReading =
  | { readonly state: 'present' }
  | { readonly state: 'missing'; readonly since: number }
  | { readonly state: 'unknown'; readonly reason: string };

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
  /** The ncid of the config that holds the address, as the router answered the last write of this leg. */
  readonly addedNcid?: string | undefined;
  /** The address was found missing and has not been seen since. */
  readonly missing?: true | undefined;
  /** Lost races of this round. */
  readonly tries: number;
  /** Tries in a row that failed for another reason. They are not limited. */
  readonly failures: number;
  /** Why the router gives or takes nothing, and since when (epoch ms), where that is known. */
  readonly trouble?: { readonly kind: 'unreachable' | 'refused'; readonly since?: number } | undefined;
  /** When the address was found missing (epoch ms). */
  readonly missingSince?: number | undefined;
  /** The router did not take the write to this config, and gets the next one to the same config at that time (epoch ms). */
  readonly refusal?: { readonly ncid: string; readonly retryAt: number } | undefined;
  /** Why the last try failed. */
  readonly lastError?: string | undefined;
  /** 0 to 1, from the newest outcome that failed: machines make no random numbers. */
  readonly jitter: number;
  /** Length of the next back-off. */
  readonly pauseMs: number;
  /** The fault that a person was alerted of, until its end has been reported. */
  readonly alerted?: LegFault | undefined;
  /** What the last look at the link showed, since the address is in the config; undefined before the first one. */
  readonly link?: LinkReading | undefined;
  /** Looks at the link in a row that did not show the address. */
  readonly linkLooks: number;
  /** A person was alerted that the address is not on the link, and not yet that it is. */
  readonly linkAlerted?: true | undefined;
  /** The name in the router's config for which this leg is refused. */
  readonly refusedName?: string | undefined;
  /** How often a missing address came back, and how often a race for the ncid was lost, since the actor began. */
  readonly healed: number;
  readonly conflicts: number;
}

export type LegEvent =
  | { type: 'CHANGED'; channel?: string; intf?: string; ncid?: string; transID?: string; at?: number }
  | { type: 'RESYNC'; reason: string }
  /** Looks at a whole leg since those that were recorded last; `differs` says what the last one did not find as before. */
  | { type: 'LOOKED'; at: number; looks: number; differs?: string }
  | { type: 'CONFIGURE'; leg: LegSettings }
  | { type: 'RELEASE' }
  | ClockSet
  | { type: 'LEG_READ'; ncid: string; addresses: readonly string[]; at: number }
  | { type: 'LEG_ABSENT'; ncid: string }
  /** The config names the network Guest or Telework. Of a kept field the name is the reason why it is not held. */
  | { type: 'LEG_REFUSED'; ncid: string; name: string }
  | { type: 'UNREACHABLE'; reason: string; jitter: number; at: number }
  | { type: 'LINK_READ'; present: boolean; at: number }
  | { type: 'LINK_UNKNOWN'; reason: string }
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
