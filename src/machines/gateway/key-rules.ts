import type { CallRequest, Verdict } from './call-shapes.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import {
  limitedNames,
  overLimit,
  overOpen,
  overShare,
  SMALLEST_COST,
  spentAt,
  usesOf,
} from './key-limits.ts';
import type { KeyContext } from './key-shapes.ts';

// Whether a key admits a call or a reading, and by which rule not.

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
