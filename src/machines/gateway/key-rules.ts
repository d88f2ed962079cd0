import type { ClockSet } from '../clock-set.ts';
import { type Allowance, allowanceOf, allows, wantsMore } from './allowance.ts';
import { type ClusterFacts, mayHaveOpen } from './cluster-facts.ts';
import { BUDGET, RPM, rpmOf, type Shared, type SlicesWanted, type SliceWanted } from './shares.ts';

/** The minute that `rpm_limit` counts in, milliseconds. */
export const WINDOW_MS = 60_000;

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

/**
 * The minute that a call falls in, with what was called in it so far. A clock that was set back begins the minute
 * anew and forgets no call: nobody waits longer than a minute, and nobody gets more than the limit by it.
 */
export function windowAt(
  { window }: Pick<KeyContext, 'window'>,
  at: number,
): { window: KeyContext['window']; endsIn: number } {
  const setBack = at < window.at;
  const current = setBack || at - window.at >= WINDOW_MS ? { at, calls: setBack ? window.calls : 0 } : window;
  return { window: current, endsIn: current.at + WINDOW_MS - at };
}

/** The window of what was never called. */
export const NO_CALLS: KeyContext['window'] = { at: 0, calls: 0 };

/** Money is counted in billionths. */
const SMALLEST_COST = 1e-9;

/** Sums of money without the dust of binary fractions: ten calls of 0.1 cost 1. */
export function add(spend: number, cost: number): number {
  return Math.max(0, Math.round((spend + cost) / SMALLEST_COST) / 1e9);
}

/** What was spent of the budget that holds at a time, and since when. A clock that was set back begins no budget anew. */
export function spentAt(
  {
    terms,
    spend,
    spendSince,
    createdAt = 0,
  }: Pick<KeyContext, 'terms' | 'spend' | 'spendSince' | 'createdAt'>,
  at: number,
): { readonly spend: number; readonly since: number } {
  const since = spendSince ?? createdAt;
  const isOver = terms?.budgetMs !== undefined && at - since >= terms.budgetMs;
  return isOver ? { spend: 0, since: at } : { spend, since };
}

/** @returns the names of `rpmLimits` that a call counts for */
export function limitedNames({ terms }: Pick<KeyContext, 'terms'>, { routes, tool }: CallRequest): string[] {
  const { rpmLimits } = terms ?? {};
  if (!rpmLimits) return [];
  const names = routes.length === 1 ? [...routes, tool] : [tool];
  return names.filter((name) => name !== undefined && Object.hasOwn(rpmLimits, name)) as string[];
}

/** When a value of a key stops being good; never when undefined. */
export function goodUntil({ terms, presents }: KeyContext, presented: string): number | undefined {
  const until = Math.min(
    terms?.expiresAt ?? Number.POSITIVE_INFINITY,
    presents[presented]?.until ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(until) ? until : undefined;
}

/** @returns why a value of a key is good for nothing */
function badKey(context: KeyContext, presented: string, at: number): Verdict | undefined {
  const { terms, presents, revokedAt } = context;
  if (!terms) return { rule: 'unknown_key' };
  if (revokedAt !== undefined) return { rule: 'revoked' };
  const present = presents[presented];
  const { until = Number.POSITIVE_INFINITY, hasEnded } = present ?? { hasEnded: true };
  if (hasEnded || at >= until) return { rule: 'rotated_out' };
  if (terms.expiresAt !== undefined && at >= terms.expiresAt) return { rule: 'expired' };
  return terms.blocked ? { rule: 'blocked' } : undefined;
}

/** Whether a value of a key is good for anything at a time. */
export const isGoodKey = (context: KeyContext, presented: string, at: number): boolean =>
  badKey(context, presented, at) === undefined;

/**
 * What a call takes up while it is open: a stream may stay for hours, a request ends. Notifications, answers and the
 * end of a session take up nothing: whoever has too much open must be able to end it.
 */
export function slotOf(method: string): 'call' | 'stream' | undefined {
  if (method === 'stream' || method === 'subscriptions/listen') return 'stream';
  return method === 'reply' || method === 'close' || method.startsWith('notifications/') ? undefined : 'call';
}

/** How soon one of many open calls may have ended. */
const TRY_AGAIN_MS = 1_000;

/** @returns why a key that has so much open already may open no more */
function overOpen({ terms }: KeyContext, call: CallRequest): Verdict | undefined {
  const { method, openCount = 0, defaultLimit, unreadBytes = 0, cluster } = call;
  if (method === 'unread') {
    const tooMuch = defaultLimit !== undefined && openCount > 0 && openCount + unreadBytes > defaultLimit;
    return tooMuch ? { rule: 'too_many_bytes_open', retryAfterMs: TRY_AGAIN_MS } : undefined;
  }
  const slot = slotOf(method);
  if (slot === undefined) return undefined;
  const own = slot === 'stream' ? terms?.maxStreams : terms?.maxParallel;
  // The gateway's own limit protects this process; that of the key holds for all hosts.
  const limit = own === undefined || !cluster ? (own ?? defaultLimit) : mayHaveOpen(own, cluster);
  if (limit === undefined || openCount < limit) return undefined;
  return { rule: slot === 'stream' ? 'too_many_streams' : 'too_many_calls', retryAfterMs: TRY_AGAIN_MS };
}

/** @returns why another call of a tool is one too many @param limited names of `rpmLimits` that it counts for */
function overLimit(
  context: KeyContext,
  at: number,
  cost: number,
  limited: readonly string[] = [],
): Verdict | undefined {
  const { terms } = context;
  const { spend } = spentAt(context, at);
  const { window, endsIn } = windowAt(context, at);
  if (terms?.rpmLimit !== undefined && window.calls >= terms.rpmLimit) {
    return { rule: 'rate_limited', retryAfterMs: endsIn };
  }
  for (const name of limited) {
    const own = windowAt({ window: context.windows?.[name] ?? NO_CALLS }, at);
    const limit = terms?.rpmLimits?.[name] ?? Number.POSITIVE_INFINITY;
    if (own.window.calls >= limit) return { rule: 'rate_limited', retryAfterMs: own.endsIn };
  }
  const over = terms?.maxBudget !== undefined && cost > 0 && add(spend, cost) > terms.maxBudget;
  return over ? { rule: 'over_budget' } : undefined;
}

/** How soon a host may be connected again. */
const RECONNECTED_MS = 2_000;

/**
 * @returns why a host that is cut off refuses: others may have revoked the key meanwhile. What may change something waits at
 * once, the rest after a while; of one that is behind, all
 */
export function cutOff(
  { isolatedMs, graceMs = 0, isBehind }: Pick<ClusterFacts, 'isolatedMs' | 'graceMs' | 'isBehind'>,
  writes = false,
): Verdict | undefined {
  if (isolatedMs === undefined) return undefined;
  return writes || isolatedMs >= graceMs
    ? { rule: isBehind ? 'host_behind' : 'host_isolated', retryAfterMs: RECONNECTED_MS }
    : undefined;
}

/** What a call uses of a limit that all hosts share. */
interface Use {
  readonly allowance: Allowance;
  readonly amount: number;
}

/** @returns what a call of a tool uses of limits that all hosts share, first those of a minute; none without a cluster */
export function usesOf(context: KeyContext, call: CallRequest): readonly Use[] {
  const { cluster, at, cost = 0, method } = call;
  if (!cluster || method !== 'tools/call') return [];
  const { terms, shared } = context;
  const sharing = { terms, shared, spend: spentAt(context, at).spend };
  const names = [RPM, ...limitedNames(context, call).map(rpmOf), ...(cost > 0 ? [BUDGET] : [])];
  return names.flatMap((name) => {
    const amount = name === BUDGET ? cost : 1;
    const allowance = allowanceOf(sharing, cluster, name, at, amount);
    return allowance ? [{ allowance, amount }] : [];
  });
}

const isOverShare = ({ allowance, amount }: Use): boolean => !allows(allowance, amount);

/** @returns why another call of a tool is one too many of those of all hosts */
function overShare(uses: readonly Use[], call: CallRequest): Verdict | undefined {
  const closedMs = call.cluster?.closedMs;
  if (closedMs !== undefined && uses.length > 0) return { rule: 'rate_limited', retryAfterMs: closedMs };
  const over = uses.find(isOverShare);
  if (!over) return undefined;
  const { name, left, endsIn } = over.allowance;
  // What no host was granted yet may be granted to this one, while it hears the others.
  const mayCome = left >= over.amount && call.cluster?.isolatedMs === undefined;
  if (mayCome) return { rule: 'rate_limited', retryAfterMs: Math.min(endsIn, TRY_AGAIN_MS) };
  return name === BUDGET ? { rule: 'over_budget' } : { rule: 'rate_limited', retryAfterMs: endsIn };
}

/** What a call that was decided uses of shared limits, and whether the host asks for more of each. */
export function usesAfter(
  uses: readonly Use[],
  call: CallRequest,
  isAdmitted: boolean,
): readonly (Use & { readonly asks: boolean })[] {
  const { cluster } = call;
  if (!cluster || cluster.closedMs !== undefined) return [];
  const of = isAdmitted ? uses : uses.filter(isOverShare).slice(0, 1);
  return of.map(({ allowance, amount }) => {
    const used = allowance.used + (isAdmitted ? amount : 0);
    return {
      allowance,
      amount: isAdmitted ? amount : 0,
      asks: wantsMore({ ...allowance, used }, cluster, call.at),
    };
  });
}

/**
 * What the terms of a key say of a call. The order is the contract: whether the key is good, whether something was
 * put where it may leak, whether the route wants an identity, whether the key may go there, whether this host may say so
 * while it is cut off from the others, and last the limits: of what is open at once, and those that only calls of tools
 * use up.
 *
 * @param uses what `usesOf` says of the call
 */
export function judge(context: KeyContext, call: CallRequest, uses = usesOf(context, call)): Verdict {
  const { terms } = context;
  const bad = badKey(context, call.presented, call.at);
  if (bad || !terms) return bad ?? { rule: 'unknown_key' };
  if (call.authorization === 'master_key' || call.misplaced?.key === 'master_key') {
    return { rule: 'master_key_misplaced' };
  }
  if (call.relay && call.authorization === 'virtual_key') return { rule: 'key_misplaced' };
  if (call.relay && call.authorization === undefined) return { rule: 'identity_required' };
  if (!call.routes.some((route) => terms.servers.includes(route))) return { rule: 'not_entitled' };
  // The end of a session is never refused.
  const cut = call.cluster && call.method !== 'close' ? cutOff(call.cluster, call.writes) : undefined;
  if (cut) return cut;
  if (call.method !== 'tools/call') return overOpen(context, call) ?? { rule: 'admitted' };
  if (call.toolUnlisted || (terms.tools && !terms.tools.includes(call.tool ?? ''))) {
    return { rule: 'tool_not_allowed' };
  }
  const over = call.cluster
    ? overShare(uses, call)
    : overLimit(context, call.at, call.cost ?? 0, limitedNames(context, call));
  return overOpen(context, call) ?? over ?? { rule: 'admitted' };
}

/** Whether a key may read about itself: a good one that is not restricted, and within its limits. */
export function judgeReading(context: KeyContext, presented: string, at: number): Verdict {
  const bad = badKey(context, presented, at);
  if (bad) return bad;
  if (context.terms?.restriction !== undefined) return { rule: 'restricted' };
  const nothingSpent = spentAt(context, at).spend === 0; // a budget of 0 is for tools that cost nothing
  return overLimit(context, at, nothingSpent ? 0 : SMALLEST_COST) ?? { rule: 'admitted' };
}
