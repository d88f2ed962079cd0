import { type Allowance, allowanceOf, allows, wantsMore } from './allowance.ts';
import type { CallRequest, Verdict } from './call-shapes.ts';
import { mayHaveOpen } from './cluster-facts.ts';
import type { KeyContext } from './key-shapes.ts';
import { BUDGET, RPM, rpmOf } from './shares.ts';

// The limits of a key: calls of a minute, money, what is open at once, and its host's part of those that all hosts share.

/** The minute that `rpm_limit` counts in, milliseconds. */
export const WINDOW_MS = 60_000;

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
export const SMALLEST_COST = 1e-9;

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
export function overOpen({ terms }: KeyContext, call: CallRequest): Verdict | undefined {
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
export function overLimit(
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

/** What a call uses of a limit that all hosts share. */
export interface Use {
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
export function overShare(uses: readonly Use[], call: CallRequest): Verdict | undefined {
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
