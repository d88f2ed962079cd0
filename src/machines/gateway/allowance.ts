import type { ClusterFacts } from './cluster-facts.ts';
import {
  BUDGET,
  exact,
  isOver,
  leftOf,
  type OwnUse,
  quotaOf,
  type Share,
  type Shared,
  type Sharing,
  sliceOf,
} from './shares.ts';

// What this host may use of limits that hold for all hosts (`shares.ts`), and what it has used.

/** A message that got lost is sent again after so long. */
const ASK_AGAIN_MS = 1_000;

/** What a host may still use of one limit. */
export interface Allowance {
  readonly name: string;
  readonly used: number;
  /** Granted to this host. */
  readonly granted: number;
  /** What it may use ahead of a grant. */
  readonly ahead: number;
  /** What no host was granted. */
  readonly left: number;
  /** When the window ends as this host sees it, milliseconds from now. */
  readonly endsIn: number;
  readonly began?: number | undefined;
  readonly at: number;
  readonly askedAt?: number | undefined;
}

/** @param need the least that is of use @returns undefined when there is no such limit */
export function allowanceOf(
  { terms, shared, spend }: Sharing,
  { host, hosts }: ClusterFacts,
  name: string,
  at: number,
  need: number,
): Allowance | undefined {
  const quota = terms && quotaOf(terms, name);
  if (!quota) return undefined;
  const { limit, lengthMs } = quota;
  const known = shared?.shares[name];
  const share = known && !isOver(known.at, at, lengthMs) ? known : undefined;
  const own = ownOf(shared, host, name, share, at, lengthMs);
  const base = name === BUDGET && !known ? spend - (own?.used ?? 0) : 0;
  const left = share ? leftOf(quota, share) : Math.max(0, exact(limit - base));
  const most = Math.max(hosts, Object.keys(share?.granted ?? {}).length);
  return {
    name,
    used: own?.used ?? 0,
    granted: share?.granted[host] ?? 0,
    ahead: sliceOf(name, left, need, most),
    left,
    endsIn: Math.min(lengthMs, (share?.at ?? own?.at ?? at) + lengthMs - at),
    began: share?.began,
    at: own?.at ?? at,
    askedAt: own?.askedAt,
  };
}

/** @returns what this host used of the window that goes on, or of one that no message has begun yet */
function ownOf(
  shared: Shared | undefined,
  host: string,
  name: string,
  share: Share | undefined,
  at: number,
  lengthMs: number,
): OwnUse | undefined {
  const own = shared?.host === host ? shared.own[name] : undefined;
  if (!own) return undefined;
  if (own.began !== undefined) return own.began === share?.began ? own : undefined;
  return isOver(own.at, at, lengthMs) ? undefined : own;
}

/** Whether so much more may be used. */
export const allows = ({ used, granted, ahead }: Allowance, amount: number): boolean =>
  exact(used + amount) <= exact(granted + ahead);

/** Whether this host should ask for more: half of its next slice is used ahead, or less is left of what it was granted. */
export function wantsMore(
  { used, granted, ahead, left, askedAt }: Allowance,
  { isolatedMs }: ClusterFacts,
  at: number,
): boolean {
  if (isolatedMs !== undefined || left <= 0 || granted - used >= ahead / 2) return false;
  return askedAt === undefined || Math.abs(at - askedAt) >= ASK_AGAIN_MS;
}

/** Counts what a call uses. @param asks whether it asks for more with it */
export function counted(
  { shared }: Sharing,
  { host }: ClusterFacts,
  uses: readonly { readonly allowance: Allowance; readonly amount: number; readonly asks: boolean }[],
  at: number,
): Shared {
  const own = Object.fromEntries(
    uses.map(({ allowance: { name, used, began, at: since, askedAt }, amount, asks }) => {
      const asked = asks ? at : askedAt;
      const use: OwnUse = {
        at: since,
        used: exact(used + amount),
        ...(began !== undefined && { began }),
        ...(asked !== undefined && { askedAt: asked }),
      };
      return [name, use];
    }),
  );
  return {
    host,
    shares: shared?.shares ?? {},
    own: { ...(shared?.host === host ? shared.own : {}), ...own },
  };
}
