import { type AccessCall, type AccessContext, type Verdict, WINDOW_MS } from './key-shapes.ts';

/**
 * The minute that a call falls in, with what was called in it so far. A clock that was set back begins the minute
 * anew and forgets no call: nobody waits longer than a minute, and nobody gets more than the limit by it.
 */
export function windowAt(
  { window }: Pick<AccessContext, 'window'>,
  at: number,
): { window: AccessContext['window']; endsIn: number } {
  const setBack = at < window.at;
  const current = setBack || at - window.at >= WINDOW_MS ? { at, calls: setBack ? window.calls : 0 } : window;
  return { window: current, endsIn: current.at + WINDOW_MS - at };
}

/** Money is counted in billionths. */
const SMALLEST_COST = 1e-9;

/** Sums of money without the dust of binary fractions: ten calls of 0.1 cost 1. */
export function add(spend: number, cost: number): number {
  return Math.max(0, Math.round((spend + cost) / SMALLEST_COST) / 1e9);
}

/** When a value of a key stops being good; never when undefined. */
export function goodUntil({ terms, presents }: AccessContext, presented: string): number | undefined {
  const until = Math.min(
    terms?.expiresAt ?? Number.POSITIVE_INFINITY,
    presents[presented]?.until ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(until) ? until : undefined;
}

/** @returns why a value of a key is good for nothing */
function badKey(context: AccessContext, presented: string, at: number): Verdict | undefined {
  const { terms, presents, revokedAt } = context;
  if (!terms) return { rule: 'unknown_key' };
  if (revokedAt !== undefined) return { rule: 'revoked' };
  const present = presents[presented];
  if (!present || (present.until !== undefined && at >= present.until)) return { rule: 'rotated_out' };
  if (terms.expiresAt !== undefined && at >= terms.expiresAt) return { rule: 'expired' };
  return undefined;
}

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
function overOpen({ terms }: AccessContext, call: AccessCall): Verdict | undefined {
  const { method, open = 0, most, bytes = 0 } = call;
  if (method === 'unread') {
    const tooMuch = most !== undefined && open > 0 && open + bytes > most;
    return tooMuch ? { rule: 'too_much_held', retryAfterMs: TRY_AGAIN_MS } : undefined;
  }
  const slot = slotOf(method);
  if (slot === undefined) return undefined;
  const limit = (slot === 'stream' ? terms?.maxStreams : terms?.maxParallel) ?? most;
  if (limit === undefined || open < limit) return undefined;
  return { rule: slot === 'stream' ? 'too_many_streams' : 'too_many_calls', retryAfterMs: TRY_AGAIN_MS };
}

/** @returns why another call of a tool is one too many */
function overLimit(context: AccessContext, at: number, cost: number): Verdict | undefined {
  const { terms, spend } = context;
  const { window, endsIn } = windowAt(context, at);
  if (terms?.rpmLimit !== undefined && window.calls >= terms.rpmLimit) {
    return { rule: 'rate_limited', retryAfterMs: endsIn };
  }
  const over = terms?.maxBudget !== undefined && cost > 0 && add(spend, cost) > terms.maxBudget;
  return over ? { rule: 'over_budget' } : undefined;
}

/**
 * What the terms of a key say of a call. The order is the contract: whether the key is good, whether something was
 * put where it may leak, whether the route wants an identity, whether the key may go there, and last the limits: of
 * what is open at once, and those that only calls of tools use up.
 */
export function judge(context: AccessContext, call: AccessCall): Verdict {
  const { terms } = context;
  const bad = badKey(context, call.presented, call.at);
  if (bad || !terms) return bad ?? { rule: 'unknown_key' };
  if (call.authorization === 'master_key' || call.misplaced?.key === 'master_key') {
    return { rule: 'master_key_misplaced' };
  }
  if (call.relay && call.authorization === 'virtual_key') return { rule: 'key_misplaced' };
  if (call.relay && call.authorization === undefined) return { rule: 'identity_required' };
  if (!call.routes.some((route) => terms.servers.includes(route))) return { rule: 'not_entitled' };
  if (call.method !== 'tools/call') return overOpen(context, call) ?? { rule: 'admitted' };
  if (call.toolUnlisted || (terms.tools && !terms.tools.includes(call.tool ?? ''))) {
    return { rule: 'tool_not_allowed' };
  }
  return overOpen(context, call) ?? overLimit(context, call.at, call.cost ?? 0) ?? { rule: 'admitted' };
}

/** Whether a key may read about itself: a good one that is not restricted, and within its limits. */
export function judgeReading(context: AccessContext, presented: string, at: number): Verdict {
  const bad = badKey(context, presented, at);
  if (bad) return bad;
  if (context.terms?.restriction !== undefined) return { rule: 'restricted' };
  const nothingSpent = context.spend === 0; // a budget of 0 is for tools that cost nothing
  return overLimit(context, at, nothingSpent ? 0 : SMALLEST_COST) ?? { rule: 'admitted' };
}
