import type { ClockSet } from '../clock-set.ts';
import type { CallEnded, CallRequest, CallRule } from './call-shapes.ts';
import type { Shared, SlicesWanted, SliceWanted } from './shares.ts';

// A virtual key: its terms, what is known of it, what reaches it, and what it asks for besides the answer to a call.

/** What a key may do. Times are epoch milliseconds. */
export interface KeyTerms {
  readonly alias: string;
  /** `user_id`: to whom calls and spend are attributed. */
  readonly owner?: string;
  /** Routes it may reach; none unless named. */
  readonly servers: readonly string[];
  /** The only tools it may see and call, by their prefixed names; all of its routes' when absent. */
  readonly tools?: readonly string[];
  /** Calls of tools a minute. */
  readonly rpmLimit?: number;
  /** What its calls may cost in all, or in each time of `budgetMs`. */
  readonly maxBudget?: number;
  /** After so long the budget begins anew, milliseconds. */
  readonly budgetMs?: number;
  /** Calls of tools a minute by single servers, or by tools with their prefixed names. */
  readonly rpmLimits?: Readonly<Record<string, number>>;
  /** Set aside for a while: nothing is admitted. */
  readonly blocked?: true;
  /** What its owner noted with it. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Requests that may be open at once; the gateway's own limit when absent. */
  readonly maxParallel?: number;
  /** Streams that may be open at once; the gateway's own limit when absent. */
  readonly maxStreams?: number;
  readonly expiresAt?: number;
  /** Endpoints it is restricted to, e.g. `llm_api_routes`, which may not read `/key/info`. */
  readonly restriction?: string;
}

/** What a key can be without. */
export type ClearableTerm = Exclude<keyof KeyTerms, 'alias' | 'servers'>;

export interface KeyContext {
  /** Raised by every change of the key: a decision names the revision it was made under. */
  readonly revision: number;
  readonly terms?: KeyTerms;
  /**
   * Ids of the values it was ever presented by; one that was rotated out ends at `until`. One that `hasEnded` is over also on a host
   * whose clock is behind, where that time is yet to come.
   */
  readonly presents: Readonly<Record<string, { readonly until?: number; readonly hasEnded?: true }>>;
  readonly createdAt?: number;
  readonly changedAt?: number;
  readonly revokedAt?: number;
  readonly lastSeenAt?: number;
  /** Calls of tools since the window began. */
  readonly window: { readonly at: number; readonly calls: number };
  readonly spend: number;
  /** When the budget began; with the key's creation unless set. */
  readonly spendSince?: number;
  /** The same for the servers and tools of `rpmLimits`. */
  readonly windows?: Readonly<Record<string, KeyContext['window']>>;
  readonly calls: number;
  readonly refused: number;
  /** When a person was last alerted that a key came where it does not belong. */
  readonly warnedAt?: number;
  /** Number of the last message to every host that it took: one that comes again is not taken twice. */
  readonly order?: number;
  /** The last of them that changed it. */
  readonly changed?: number;
  /** What the hosts of a cluster share of its limits. */
  readonly shared?: Shared;
}

/**
 * A host hears what another one knows of a key: one of them has missed messages, so that each may know changes that the other
 * does not. What both know then depends on no order: the newer change holds, and a revocation holds over everything.
 */
export interface KeyHeard {
  readonly type: 'KEY_HEARD';
  readonly at: number;
  /** The host that said so. */
  readonly from: string;
  /** By how much this host's clock is ahead of that host's, milliseconds. */
  readonly aheadMs: number;
  readonly context: KeyContext;
}

/**
 * What reaches a key. A change says who made it (`by`): the operator's name, or the fingerprint of the master key that a client
 * presented. Events of older logs lack it.
 * With several hosts it says its place among all changes (`order`), which all hosts take alike.
 */
export type KeyEvent =
  | {
      readonly type: 'KEY_CREATED';
      readonly at: number;
      readonly by?: string;
      readonly order?: number;
      readonly terms: KeyTerms;
      readonly presented: string;
    }
  | {
      readonly type: 'KEY_UPDATED';
      readonly at: number;
      readonly by?: string;
      readonly order?: number;
      /** Terms that are other ones from now on. */
      readonly set: Partial<KeyTerms>;
      /** Terms that no longer hold. */
      readonly clear?: readonly ClearableTerm[];
    }
  | {
      readonly type: 'KEY_ROTATED';
      readonly at: number;
      readonly by?: string;
      readonly order?: number;
      readonly presented: string;
      /** How long the values before stay good; absent when they end at once. */
      readonly overlapMs?: number;
    }
  | { readonly type: 'KEY_REVOKED'; readonly at: number; readonly by?: string; readonly order?: number }
  | {
      /** Somebody asks about the key with the key itself. */
      readonly type: 'KEY_READ';
      readonly at: number;
      readonly presented: string;
    }
  | SlicesWanted
  | KeyHeard
  | ClockSet
  | CallRequest
  | CallEnded;

/** Effect `gateway.want_slice`: the hosts of the cluster hear what this one needs of the key's limits. */
export interface WantParams {
  readonly host: string;
  readonly hosts: number;
  readonly wants: readonly SliceWanted[];
}

/** Effect `gateway.confine`: what of the calls that are open now may go on after a change of the key. */
export interface ConfineParams {
  /** Routes that the key may still reach; calls to others end. */
  readonly servers: readonly string[];
  /** When all of them end at the latest. */
  readonly until?: number;
}

/** Effect `http.reply` for a change or a reading of a key; the surface adds what no record may hold. */
export interface KeyReply {
  readonly status: number;
  readonly body: { readonly revision: number; readonly rule?: CallRule; readonly retryAfterMs?: number };
}
