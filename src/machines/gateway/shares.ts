// Limits that hold for all hosts of a cluster together (G16): each host spends from slices that are granted by messages,
// which every host applies in the same order, so that all compute the same grants and a replay decides the same.
//
// A host may spend what it was granted, and ahead of that what it would be granted next, so that the first call of a minute
// waits for no message. So hosts that know nothing of each other pass a limit by one slice each at most; the slices shrink
// as the limit nears. The minutes of a limit are those of the message server's clock, because the hosts' own clocks may be apart;
// so a host that has lost messages shares the next minute as all others do. A budget begins with the first message after the last
// one ended. A host learns of it later by the delay of the message, and what it spends of the
// window before until then counts for that one.

/** What a host asks for, of one limit. */
export interface SliceWanted {
  /** `rpm`, `rpm <server or tool>`, or `budget`. */
  readonly name: string;
  /** What this host has used in the window, of that window. */
  readonly used: number;
  /** The window, by the message that began it; absent when the host knows of none. */
  readonly began?: number | undefined;
  /** The least that is of use: a call, or its cost. */
  readonly need: number;
  /** What was spent of a budget before hosts shared it. */
  readonly base?: number | undefined;
}

/** One limit in its window, the same on every host but for `at`. */
export interface Share {
  /** Which one it is: the time of the minute, or the number of the message that began the budget. */
  readonly began: number;
  /** When it began, by the message server's clock. */
  readonly since: number;
  /** When this host heard that it began, by its own clock. */
  readonly at: number;
  /** When what hosts had not used was last taken back, by the message server's clock. */
  readonly reclaimed: number;
  /** Spent before hosts shared it. */
  readonly base: number;
  /** By host. */
  readonly granted: Readonly<Record<string, number>>;
  /** By host, as it last said. */
  readonly used: Readonly<Record<string, number>>;
}

/** What this host uses of one limit. */
export interface OwnUse {
  /** The window that it counts for; absent while this host knows of none that goes on. */
  readonly began?: number | undefined;
  /** When it began to count, by this host's clock. */
  readonly at: number;
  readonly used: number;
  /** When it asked for a slice that has not come yet. */
  readonly askedAt?: number | undefined;
}

/** What a key's hosts share of its limits. */
export interface Shared {
  /** The host whose `own` this is: a state may have come from another one. */
  readonly host: string;
  readonly shares: Readonly<Record<string, Share>>;
  readonly own: Readonly<Record<string, OwnUse>>;
}

/** The terms of a key that hosts share. */
interface Limits {
  readonly rpmLimit?: number;
  readonly rpmLimits?: Readonly<Record<string, number>>;
  readonly maxBudget?: number;
  readonly budgetMs?: number;
}

/** A limit and the time in which it holds. */
interface Quota {
  readonly limit: number;
  /** Infinite for a budget that begins never anew, milliseconds. */
  readonly lengthMs: number;
}

const MINUTE_MS = 60_000;
export const RPM = 'rpm';
export const BUDGET = 'budget';
export const rpmOf = (name: string): string => `${RPM} ${name}`;

export function quotaOf(
  { rpmLimit, rpmLimits, maxBudget, budgetMs }: Limits,
  name: string,
): Quota | undefined {
  const isBudget = name === BUDGET;
  const own = name.slice(RPM.length + 1);
  const ofName = rpmLimits && Object.hasOwn(rpmLimits, own) ? rpmLimits[own] : undefined;
  const limit = isBudget ? maxBudget : name === RPM ? rpmLimit : ofName;
  if (limit === undefined) return undefined;
  return { limit, lengthMs: isBudget ? (budgetMs ?? Number.POSITIVE_INFINITY) : MINUTE_MS };
}

/** Money is counted in billionths. */
export const exact = (amount: number): number => Math.round(amount * 1e9) / 1e9;

const sum = (amounts: Readonly<Record<string, number>>): number =>
  exact(Object.values(amounts).reduce((total, amount) => total + amount, 0));

/** A clock that was set by more than the window begins it anew. */
export const isOver = (since: number, now: number, lengthMs: number): boolean =>
  Math.abs(now - since) >= lengthMs;

/** What a host is granted at most, of what nobody was granted yet: less than an even part, so that others get theirs. */
export function sliceOf(name: string, left: number, need: number, hosts: number): number {
  const even = left / Math.max(1, hosts);
  // What a host has not told of the use of its budget may be granted again, so that two slices of it may be too much.
  return Math.min(left, Math.max(need, name === BUDGET ? exact(even / 4) : Math.floor(even / 2)));
}

export const leftOf = ({ limit }: Quota, share: Share): number =>
  Math.max(0, exact(limit - share.base - sum(share.granted)));

/** What of a key's state its shared limits depend on. */
export interface Sharing {
  readonly terms?: Limits | undefined;
  readonly shared?: Shared | undefined;
  /** What was spent, also before hosts shared it. */
  readonly spend: number;
}

/** A host asks for slices, as every host hears it in the same order. */
export interface SlicesWanted {
  readonly type: 'SLICE_WANTED';
  /** When this host heard it, by its own clock. */
  readonly at: number;
  readonly order: number;
  /** When it was sent, by the message server's clock. */
  readonly sentAt: number;
  /** Who asks. */
  readonly host: string;
  /** Who hears it: the host whose log this is. */
  readonly here: string;
  /** How many there are, as the one that asks knows. */
  readonly hosts: number;
  readonly wants: readonly SliceWanted[];
}

/** Grants what a host asks for, as far as the limits go. @returns what is shared then, and what was spent by all as far as it is known */
export function granted(
  { terms, shared, spend }: Sharing,
  event: SlicesWanted,
): { readonly shared: Shared; readonly spend: number } {
  const before: Shared =
    shared?.host === event.here ? shared : { host: event.here, shares: shared?.shares ?? {}, own: {} };
  const next = { shares: { ...before.shares }, own: { ...before.own } };
  let spent = spend;
  for (const want of event.wants) {
    const quota = terms && quotaOf(terms, want.name);
    if (!quota) continue;
    const { name } = want;
    const earlier = next.shares[name];
    const share = grantedOf(quota, earlier, event, want);
    next.shares[name] = share;
    const own = joined(next.own[name], share, event, quota.lengthMs);
    if (own) next.own[name] = own;
    if (name !== BUDGET) continue;
    const begunAnew = earlier !== undefined && share.began !== earlier.began;
    const told = (share.used[event.host] ?? 0) - (begunAnew ? 0 : (earlier?.used[event.host] ?? 0));
    spent = exact((begunAnew ? (own?.used ?? 0) : spent) + (event.host === event.here ? 0 : told));
  }
  return { shared: { host: event.here, ...next }, spend: spent };
}

function grantedOf(
  quota: Quota,
  earlier: Share | undefined,
  { order, sentAt, at, host, hosts }: SlicesWanted,
  want: SliceWanted,
): Share {
  const goesOn = earlier && !isOver(earlier.since, sentAt, quota.lengthMs) ? earlier : undefined;
  const begun = { ...windowOf(want.name, order, sentAt, at), base: 0, granted: {}, used: {} };
  const share = reclaimed(goesOn ?? begun, sentAt);
  const base = earlier && !goesOn ? 0 : Math.max(share.base, want.base ?? 0);
  // What was used in a window that is over does not count for this one.
  const told = want.began === undefined || want.began === share.began ? want.used : 0;
  const has = share.granted[host] ?? 0;
  const left = leftOf(quota, { ...share, base });
  const owed = Math.min(left, Math.max(0, exact(told - has)));
  const more = sliceOf(want.name, exact(left - owed), want.need, hosts);
  return {
    ...share,
    base,
    granted: { ...share.granted, [host]: exact(has + owed + more) },
    used: { ...share.used, [host]: Math.max(share.used[host] ?? 0, told) },
  };
}

/** The window that a message begins. */
function windowOf(name: string, order: number, sentAt: number, at: number) {
  if (name === BUDGET) return { began: order, since: sentAt, at, reclaimed: sentAt };
  const since = sentAt - (sentAt % MINUTE_MS);
  return { began: since, since, at: Math.max(1, at - (sentAt - since)), reclaimed: since };
}

/** Takes back what hosts were granted and did not use for a minute: one that is gone must not keep a part of a budget. */
function reclaimed(share: Share, sentAt: number): Share {
  return isOver(share.reclaimed, sentAt, MINUTE_MS)
    ? { ...share, granted: share.used, reclaimed: sentAt }
    : share;
}

/** What this host has used counts for the window that its messages tell of. */
function joined(
  own: OwnUse | undefined,
  { began, at: heardAt }: Share,
  { at, host, here }: SlicesWanted,
  lengthMs: number,
): OwnUse | undefined {
  if (!own) return undefined;
  const counts = own.began === undefined ? !isOver(own.at, at, lengthMs) : own.began === began;
  const asked = host === here ? undefined : own.askedAt;
  return {
    began,
    at: heardAt,
    used: counts ? own.used : 0,
    ...(asked !== undefined && { askedAt: asked }),
  };
}

/** Times by this host's clock after it was set. */
export function sharedMoved(shared: Shared, byMs: number): Shared {
  if (!Number.isFinite(byMs)) return shared; // an imported log may hold anything
  const shift = (at: number): number => Math.max(1, at + byMs);
  return {
    ...shared,
    shares: Object.fromEntries(
      Object.entries(shared.shares).map(([name, share]) => [name, { ...share, at: shift(share.at) }]),
    ),
    own: Object.fromEntries(
      Object.entries(shared.own).map(([name, { askedAt, ...use }]) => [
        name,
        { ...use, at: shift(use.at), ...(askedAt !== undefined && { askedAt: shift(askedAt) }) },
      ]),
    ),
  };
}
