/**
 * What goes into and comes out of the config transaction: its context, events and effect parameters. Plain data,
 * without secrets: a config is named by its ncid and fingerprint.
 */

/** A config as the machine knows it: its lock token, and the keyed hash under which its sealed body is stored. */
export type ConfigVersion = {
  readonly ncid: string;
  readonly fingerprint: string;
};

/** What an apply reached; told with LOADED when the store shows that a lost one came about. */
export interface Reach {
  readonly reapplied: readonly string[];
  /** The legs whose file for the DHCP daemon was rewritten. */
  readonly rewritten?: readonly string[];
  /** The access-point controller took a change. */
  readonly apc?: true;
}

/** A request that waits for its decision. `request` addresses the answer; `story` is its correlation where that is another. */
export interface Ask {
  readonly op: 'save' | 'append' | 'commit' | 'revert' | 'reapply';
  readonly request: string;
  readonly story?: string;
  readonly who: string;
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  readonly fingerprint?: string;
}

/** What is being applied now. Without `ask` the window has run out and nobody waits for an answer. */
export interface Job {
  readonly op: 'save' | 'append' | 'commit' | 'revert' | 'reapply';
  readonly before: ConfigVersion;
  /** Of the config to apply. */
  readonly fingerprint: string;
  readonly transID?: string;
  readonly ask?: Ask;
  /** The ask is an append whose window ran out under it: it is answered once the revert stands. */
  readonly late?: true;
}

/** The pending transaction; its deadline is the armed timer `window`. */
export interface Pending {
  readonly transID: string;
  readonly who: string;
  /** What a revert restores. */
  readonly previous: ConfigVersion;
  /** Another router opened it: what was left of its window when the store was read, milliseconds. */
  readonly leftMs?: number;
  readonly expired?: true;
  /** The window starts anew; true within one step only. */
  readonly renewed?: true;
}

/** What a store that several routers share says of the transaction; it has one when any of them has. */
export type SharedState = {
  readonly shared?: true;
  readonly transaction?: {
    readonly transID: string;
    readonly who: string;
    readonly previous: ConfigVersion;
    readonly leftMs: number;
  };
};

export interface TransactionContext {
  /** Until an uncommitted transaction reverts, and until a failed revert is tried again, milliseconds. */
  readonly windowMs: number;
  readonly retryMs: number;
  readonly queueLimit: number;
  readonly active: ConfigVersion;
  /** Other routers decide on the same store, which therefore holds the transaction, too. */
  readonly shared?: true | undefined;
  readonly queue: readonly Ask[];
  /** The transIDs that ended last: each must be fresh. */
  readonly used: readonly string[];
  readonly pending?: Pending | undefined;
  readonly job?: Job | undefined;
  readonly late?: Ask | undefined;
  /** Why the effect that applied ended without saying what it did. */
  readonly failure?: string | undefined;
  /** How the last transaction ended. */
  readonly last?: { readonly outcome: 'committed' | 'reverted'; readonly transID: string } | undefined;
}

export interface TransactionInput {
  readonly windowMs?: number;
  readonly retryMs?: number;
  readonly queueLimit?: number;
}

/** `POST /v1/config/set`, as a projection: the body itself is a sealed blob under its fingerprint. */
export interface SetEvent {
  readonly type: 'SET';
  readonly request: string;
  readonly story?: string;
  readonly who: string;
  readonly op?: 'append' | 'commit' | 'revert';
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  /** Absent for commit and revert, which bear no config. */
  readonly fingerprint?: string;
  /** Paths that differ from the config that was active when the request came. For the story only. */
  readonly changed?: readonly string[];
}

export type TransactionEvent =
  | SetEvent
  | {
      readonly type: 'APPLY_CURRENT';
      readonly request: string;
      readonly story?: string;
      readonly who: string;
    }
  /** The operator's settings are other ones than the actor was started with. */
  | ({ readonly type: 'CONFIGURE' } & Required<TransactionInput>)
  /** What the store holds: told at start, and asked for when an apply ended without an answer. */
  | ({ readonly type: 'LOADED'; readonly origin?: string } & Partial<Reach> & SharedState & ConfigVersion)
  | ({ readonly type: 'APPLIED' } & Reach & ConfigVersion)
  | {
      readonly type: 'APPLY_FAILED';
      readonly errors: readonly string[];
      readonly code: string;
      readonly status: number;
    }
  /** The store held another config than the one the decision was made on. Nothing was applied. */
  | ({ readonly type: 'OVERTAKEN' } & SharedState & ConfigVersion)
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Effect `router.apply`: bring the box and the store from the expected config to another. */
export interface ApplyParams {
  readonly op: Job['op'];
  /** The ncid that the store must hold, and the fingerprint that belongs to it. */
  readonly expected: string;
  readonly before: string;
  readonly fingerprint: string;
  readonly transID?: string;
  readonly who: string;
}

/** Effect `router.publish`: tell the channels of a config that has been saved. */
export interface PublishParams {
  readonly ncid: string;
  readonly reapplied: readonly string[];
  readonly rewritten?: readonly string[];
  readonly apc?: true;
  readonly transID?: string;
  /** The correlation of the request that caused it, when one did. */
  readonly story?: string;
}

/** Effect `http.reply` for one request; a queued one is answered in a later story than its own. */
export interface ReplyParams {
  readonly to: string;
  readonly status: number;
  readonly body: { readonly errors: readonly string[]; readonly ncid?: string; readonly code?: string };
  readonly headers?: Readonly<Record<string, string>>;
}
