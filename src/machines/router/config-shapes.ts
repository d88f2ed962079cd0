/**
 * Context, events and effect parameters of the machine `config.ts`. Plain data without secrets: a config is named by its
 * ncid and fingerprint.
 */

/** Names a config in the machine: its lock token, and the keyed hash under which its sealed body is stored. */
export type ConfigVersion = {
  readonly ncid: string;
  readonly fingerprint: string;
};

/** What an apply changed. */
export interface AppliedChanges {
  readonly reapplied: readonly string[];
  /** The legs whose file for the DHCP daemon was rewritten. */
  readonly rewritten?: readonly string[];
  /** The access-point controller took a change. */
  readonly apc?: true;
  /** Nothing but its part differs, so that nobody else is told. */
  readonly apcOnly?: true;
}

/** Of two writes of a singleton the one with the larger number came later. */
export type Fence = {
  readonly singleton: string;
  readonly number: number;
};

type Op = 'save' | 'append' | 'commit' | 'revert' | 'reapply';

/** A request that waits for its decision. */
export interface WriteRequest {
  readonly op: Op;
  /** Addresses the answer. */
  readonly request: string;
  /** The correlation id, where it is another than `request`. */
  readonly correlation?: string;
  /** The client, for people. */
  readonly who: string;
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  readonly current?: string;
  readonly fingerprint?: string;
  readonly fence?: Fence;
}

/** The write that is being carried out. */
export interface Job {
  readonly op: Op;
  readonly before: ConfigVersion;
  /** Fingerprint of the config to apply. */
  readonly fingerprint: string;
  readonly transID?: string;
  readonly who: string;
  /** Addresses the answer; empty for the revert at the end of a window, which no client requested. */
  readonly request: string;
  readonly correlation?: string;
  /** The revert answers an append that the end of the window overtook. */
  readonly late?: true;
  /** Why the apply ended without a result. */
  readonly fault?: string;
}

/** The transaction that is neither committed nor reverted. Its deadline is the armed timer `window`. */
export interface Pending {
  readonly transID: string;
  readonly who: string;
  /** What a revert restores. */
  readonly previous: ConfigVersion;
  /** Another router opened it: what was left of its window when the store was read, milliseconds. */
  readonly leftMs?: number;
}

/** What a store that several routers share says of the transaction. */
export type SharedState = {
  readonly shared?: true;
  readonly transaction?: Required<Pending>;
};

export interface ConfigContext {
  /** Until an uncommitted transaction reverts, and until a failed revert is tried again, milliseconds. */
  readonly windowMs: number;
  readonly retryMs: number;
  readonly queueLimit: number;
  readonly active: ConfigVersion;
  /** Other routers decide on the same store, which therefore holds the transaction, too. */
  readonly shared?: true | undefined;
  readonly queue: readonly WriteRequest[];
  /** The transIDs that ended last. */
  readonly used: readonly string[];
  /** The largest number that came of each singleton. */
  readonly fences?: Readonly<Record<string, number>>;
  /** Present in the states `pending` and `expired`. */
  readonly pending?: Pending | undefined;
  /** Present in the states `busy`. */
  readonly job?: Job | undefined;
  /** How the last transaction ended. */
  readonly last?: { readonly outcome: 'committed' | 'reverted'; readonly transID: string } | undefined;
}

/** An operator's settings; the documents' own where one is left out. */
export interface ConfigInput {
  readonly windowMs?: number;
  readonly retryMs?: number;
  readonly queueLimit?: number;
}

/** `POST /v1/config/set`, as a projection: the body itself is a sealed blob under its fingerprint. */
export interface SetEvent {
  readonly type: 'SET';
  readonly request: string;
  readonly correlation?: string;
  readonly who: string;
  readonly op?: 'append' | 'commit' | 'revert';
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  /** The ncid that the store held when the request was looked at, where the request's is another: it comes too late. */
  readonly current?: string;
  /** Absent for commit and revert, which bear no config, and for a config that comes too late. */
  readonly fingerprint?: string;
  /** Paths that differ from the config that was active when the request came; for people who read the log. */
  readonly changed?: readonly string[];
  readonly fence?: Fence;
}

export type ConfigEvent =
  | SetEvent
  | {
      readonly type: 'APPLY_CURRENT';
      readonly request: string;
      readonly correlation?: string;
      readonly who: string;
      /** How many callers this one apply answers; absent: 1. */
      readonly callers?: number;
      readonly fence?: Fence;
    }
  /** The operator's settings differ from those that the actor was started with. */
  | ({ readonly type: 'CONFIGURE' } & Required<ConfigInput>)
  /** The store was read: at the start, at a reconnect, or because somebody else wrote it. */
  | ({ readonly type: 'LOADED'; readonly origin?: string } & SharedState & ConfigVersion)
  | ({ readonly type: 'APPLIED' } & AppliedChanges & ConfigVersion)
  | {
      readonly type: 'APPLY_FAILED';
      readonly errors: readonly string[];
      readonly code: string;
      readonly status: number;
    }
  /** The store contained another config than the one that the decision was based on. Nothing was applied. */
  | ({ readonly type: 'OVERTAKEN' } & SharedState & ConfigVersion)
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Effect `router.apply`: bring kernel, files and store from the expected config to another. */
export interface ApplyParams {
  readonly op: Op;
  /** The ncid that the store must hold, and the fingerprint that belongs to it. */
  readonly expected: string;
  readonly before: string;
  readonly fingerprint: string;
  readonly transID?: string;
  readonly who: string;
}

/** Effect `router.verify`: find out in the store how an apply ended. Its outcome is that of the apply. */
export interface VerifyParams extends ApplyParams {
  /** Why the apply ended without a result. */
  readonly fault: string;
}

/** Effect `router.publish`: publish a saved config on the channels. */
export interface PublishParams {
  readonly ncid: string;
  readonly reapplied: readonly string[];
  readonly rewritten?: readonly string[];
  readonly apc?: true;
  readonly apcOnly?: true;
  readonly transID?: string;
  /** The correlation of the request that caused it, when one did. */
  readonly correlation?: string;
}

/** Effect `http.reply` for one request; a queued one is answered under the correlation id of a later request. */
export interface ReplyParams {
  readonly to: string;
  readonly status: number;
  readonly body: { readonly errors: readonly string[]; readonly ncid?: string; readonly code?: string };
  readonly headers?: Readonly<Record<string, string>>;
}
