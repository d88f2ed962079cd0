import { type AccessCall, type AccessContext, type Verdict, WINDOW_MS } from './shapes.ts';

/** The minute that a call falls in, with what was called in it so far. */
export function windowAt(
  context: AccessContext,
  at: number,
): { window: AccessContext['window']; endsIn: number } {
  const { window } = context;
  const current = at - window.at < WINDOW_MS ? window : { at, calls: 0 };
  return { window: current, endsIn: current.at + WINDOW_MS - at };
}

/**
 * What the terms of a key say of a call. The order is the contract: whether the key is good, whether something was
 * put where it may leak, whether the route wants an identity, whether the key may go there, and last the limits,
 * which only calls of tools use up.
 */
export function judge(context: AccessContext, call: AccessCall): Verdict {
  const { terms, presents, spend } = context;
  if (!terms) return { rule: 'unknown_key' };
  if (context.revokedAt !== undefined) return { rule: 'revoked' };
  const present = presents[call.presented];
  if (!present || (present.until !== undefined && call.at >= present.until)) return { rule: 'rotated_out' };
  if (terms.expiresAt !== undefined && call.at >= terms.expiresAt) return { rule: 'expired' };
  if (call.authorization === 'master_key') return { rule: 'master_key_misplaced' };
  if (call.relay && call.authorization === 'virtual_key') return { rule: 'key_misplaced' };
  if (call.relay && call.authorization === undefined) return { rule: 'identity_required' };
  if (!call.routes.some((route) => terms.servers.includes(route))) return { rule: 'not_entitled' };
  if (call.method !== 'tools/call') return { rule: 'admitted' };
  if (call.toolUnlisted || (terms.tools && !terms.tools.includes(call.tool ?? ''))) {
    return { rule: 'tool_not_allowed' };
  }
  const { window, endsIn } = windowAt(context, call.at);
  if (terms.rpmLimit !== undefined && window.calls >= terms.rpmLimit) {
    return { rule: 'rate_limited', retryAfterMs: endsIn };
  }
  const cost = call.cost ?? 0;
  if (terms.maxBudget !== undefined && cost > 0 && spend + cost > terms.maxBudget)
    return { rule: 'over_budget' };
  return { rule: 'admitted' };
}
