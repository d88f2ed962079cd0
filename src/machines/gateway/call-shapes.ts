import type { ClusterFacts } from './cluster-facts.ts';

// A call through the gateway: as it came, what was decided about it, and how it ended.

/** A key where none belongs. */
export interface MisplacedKey {
  readonly key: 'virtual_key' | 'master_key';
  /** `query`, `path`, or a header by its name. */
  readonly where: string;
}

/** A call as the surface saw it: facts, nothing decided. */
export type CallRequest = {
  readonly type: 'CALL';
  readonly at: number;
  /** Fingerprint of the presented value. */
  readonly presented: string;
  /** The route, or for the aggregate all that it may mean. */
  readonly routes: readonly string[];
  /** Revision of the route table. */
  readonly table: number;
  /**
   * JSON-RPC method; `stream` for a GET, `close` for a DELETE, `reply` for an answer to the server, `invalid` for what
   * breaks the protocol, `unread` for a request whose body was not read.
   */
  readonly method: string;
  /** Prefixed name of the tool that is called. */
  readonly tool?: string;
  /** The route's own list does not have the tool. */
  readonly toolUnlisted?: true;
  /** What stood in `Authorization`. */
  readonly authorization?: 'bearer' | 'virtual_key' | 'master_key';
  /** A key that came somewhere else. */
  readonly misplaced?: MisplacedKey;
  /** The route relays the caller's own token and wants one. */
  readonly relay?: true;
  /** The route may change state: its decisions are durable before they count. */
  readonly writes?: true;
  readonly cost?: number;
  /** Length of its body, when the body was not read (method `unread`). */
  readonly unreadBytes?: number;
  /**
   * How many calls (or streams, by `slotOf`) of this key are open already; for a body that was not read, how many bytes
   * of bodies the key holds. Absent: 0.
   */
  readonly openCount?: number;
  /** The gateway's own limit for that number, which holds where the key's terms set none. */
  readonly defaultLimit?: number;
  /** How many identical calls share the decision: a refusal is for all of them, an admission only for the first. */
  readonly count?: number;
  /** While there are several hosts: limits hold for all of them, and a host that is cut off may not know of changes. */
  readonly cluster?: ClusterFacts;
};

export type CallRule =
  | 'admitted'
  | 'unknown_key'
  | 'revoked'
  | 'expired'
  | 'rotated_out'
  | 'blocked'
  | 'master_key_misplaced'
  | 'key_misplaced'
  | 'identity_required'
  | 'not_entitled'
  | 'host_isolated'
  | 'host_behind'
  | 'tool_not_allowed'
  | 'too_many_calls'
  | 'too_many_streams'
  | 'too_many_bytes_open'
  | 'rate_limited'
  | 'over_budget'
  | 'restricted';

/** Why a caller is rejected who presents no key that is known. */
export type RejectionRule =
  | 'no_key'
  | 'malformed_key'
  | 'unknown_key'
  | 'key_only_in_authorization'
  | 'master_key_presented'
  | 'master_key_wanted'
  | 'virtual_key_wanted'
  | 'key_in_query'
  /** It ended before its handler, and was looked at only for a key where none belongs. */
  | 'not_read'
  /** It was let in on the REST API, and was looked at only for another key where none belongs. */
  | 'let_in';

export interface Verdict {
  readonly rule: CallRule;
  /** What is left of the minute, for `rate_limited`; for what is open already, when it is worth another try. */
  readonly retryAfterMs?: number;
}

/** Whose call a decision is about: to whom it and what it costs are attributed. */
export interface Attribution {
  readonly alias?: string;
  /** `user_id`. */
  readonly owner?: string;
}

/** Effect `gateway.forward`: the call goes to these of its routes. */
export interface ForwardParams extends Attribution {
  readonly routes: readonly string[];
  readonly revision: number;
  /** When the key, or the value it was presented by, stops being good: a stream goes on no longer. */
  readonly until?: number;
  /** Only these tools may appear in a list. */
  readonly tools?: readonly string[];
  /** Charged for it. */
  readonly cost?: number;
}

/** Effect `gateway.answer`: the gateway answers itself, by this rule of this revision of the key. */
export interface AnswerParams extends Attribution {
  readonly rule: CallRule | RejectionRule;
  /** Revision of the key; absent for a caller without one. */
  readonly revision?: number;
  readonly retryAfterMs?: number;
}

/** How a forwarded call ended; HTTP, JSON-RPC and tool errors are distinguished. */
export type CallEnded = {
  readonly type: 'CALL_ENDED';
  readonly outcome:
    | 'ok'
    | 'tool_error'
    | 'rpc_error'
    | 'http_error'
    | 'unreachable'
    | 'timed_out'
    | 'cut'
    | 'failed'
    | 'cancelled'
    | 'answered'
    | 'gone';
  /** HTTP status that the client was sent; absent when it got none. */
  readonly status?: number;
  /** JSON-RPC error code. */
  readonly code?: number;
  /** What an upstream that refuses the caller's own token says of it, such as `invalid_token`. */
  readonly refusal?: string;
  readonly ms: number;
  /** Length of the answer's body. */
  readonly bytes?: number;
  readonly cost?: number;
};
