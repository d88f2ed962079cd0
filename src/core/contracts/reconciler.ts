/** What commands of other plugins ask the reconciler of a running instance. */

/** The operation that says whether the legs may be written, and what would be. */
export const ADOPTION_PATH = '/reconciler/adoption';

/** Whether the legs may be written to the router. */
export interface AdoptionView {
  readonly state: 'not needed' | 'observing' | 'adopted';
  /** Base URL of a router elsewhere. */
  readonly place?: string;
  /** Names this list for this router; a confirmation repeats it. */
  readonly list?: string;
  /** Who confirmed it, how, and when (ISO 8601). */
  readonly by?: string;
  readonly how?: 'operator' | 'option';
  readonly at?: string;
  readonly legs: readonly {
    readonly intf: string;
    readonly label: string;
    readonly address: string;
    /** Set for a kept field of the config: `intf` is its path, and `address` its value as JSON. */
    readonly match?: 'equals' | 'contains';
    /** As health pages name it; `not adopted` lacks its address. */
    readonly state: string;
    /** The state with its reasons, for people. */
    readonly text: string;
  }[];
}

/** The operation that lists what saves of others dropped; `…/asked` announces removals that Holdfast is asked for. */
export const DROPPED_PATH = '/reconciler/dropped';

/** Saves after which paths were gone that nobody had asked to remove, the newest first. */
export interface DroppedView {
  readonly saves: readonly {
    /** ISO 8601. */
    readonly at: string;
    readonly ncid: string;
    readonly paths: readonly string[];
    readonly count: number;
    /** Those that raised an alert. */
    readonly alerted: readonly string[];
  }[];
}
