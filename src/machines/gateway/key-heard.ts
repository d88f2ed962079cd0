import type { KeyContext, KeyHeard } from './key-shapes.ts';
import { BUDGET, type Shared } from './shares.ts';

/** Whether another host knows of a key what this one does not. */
export function isNews(own: KeyContext, heard: KeyContext): boolean {
  if (!heard.terms) return false;
  const never = Number.POSITIVE_INFINITY;
  const isRevoked = (heard.revokedAt ?? never) < (own.revokedAt ?? never);
  const isMore = heard.spend > own.spend || toldMore(own.shared, heard.shared);
  return isRevoked || isMore || isNewer(heard, own);
}

/** @returns what this host knows of a key when it has heard what another one does; no counter is less than it was */
export function heardOf(own: KeyContext, { context: heard, aheadMs }: KeyHeard): Partial<KeyContext> {
  const shared = heard.shared && sharedHere(own.shared, heard.shared, aheadMs);
  const common = {
    ...revokedIn(own, heard),
    order: Math.max(own.order ?? 0, heard.order ?? 0),
    spend: Math.max(own.spend, heard.spend),
    ...(shared && { shared }),
  };
  if (!own.terms) {
    const [calls, refused] = [Math.max(own.calls, heard.calls), Math.max(own.refused, heard.refused)];
    return { ...common, ...changeOf(heard, own), calls, refused };
  }
  return isNewer(heard, own) ? { ...common, ...changeOf(heard, own) } : common;
}

/** What the newest change left. */
function changeOf(
  { terms, presents, createdAt, changedAt, changed, revision }: KeyContext,
  own: KeyContext,
): Partial<KeyContext> {
  return {
    revision: Math.max(own.revision, revision),
    ...(terms && { terms }),
    presents,
    ...(createdAt !== undefined && { createdAt }),
    ...(changedAt !== undefined && { changedAt }),
    ...(changed !== undefined && { changed }),
  };
}

function revokedIn(...known: readonly KeyContext[]): Pick<KeyContext, 'revokedAt'> {
  const times = known.flatMap(({ revokedAt }) => (revokedAt === undefined ? [] : [revokedAt]));
  return times.length === 0 ? {} : { revokedAt: Math.min(...times) };
}

/** By the message that changed it last, then by how many did. Of two that miss as much, all hosts take the same. */
function isNewer(one: KeyContext, other: KeyContext): boolean {
  const age = ({ changed = 0, revision, changedAt = 0 }: KeyContext) => [changed, revision, changedAt];
  const [its, others] = [age(one), age(other)];
  const index = its.findIndex((value, i) => value !== others[i]);
  if (index >= 0) return (its[index] ?? 0) > (others[index] ?? 0);
  return textOf(one) > textOf(other);
}

const textOf = ({ terms, presents }: KeyContext): string => JSON.stringify([sorted(terms), sorted(presents)]);
const sorted = (fields: object = {}) =>
  Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1));

const toldOf = (shared: Shared | undefined) => shared?.shares[BUDGET]?.used ?? {};

function toldMore(own: Shared | undefined, heard: Shared | undefined): boolean {
  return Object.entries(toldOf(heard)).some(([host, used]) => used > (toldOf(own)[host] ?? 0));
}

/**
 * Slices of a limit that this host knows nothing of are as the other knows them. Of a budget it learns what each host told of its use.
 * What is granted of a minute is not mixed: it begins anew for all hosts with the next one.
 */
function sharedHere(own: Shared | undefined, heard: Shared, aheadMs: number): Shared {
  const unknown = Object.entries(heard.shares)
    .filter(([name]) => own?.shares[name] === undefined)
    .map(([name, share]) => [name, { ...share, at: Math.max(1, share.at + aheadMs) }] as const);
  const shares = { ...own?.shares, ...Object.fromEntries(unknown) };
  const [budget, told] = [own?.shares[BUDGET], heard.shares[BUDGET]];
  if (budget && told) {
    const used = mostOf(budget.used, told.used);
    shares[BUDGET] = {
      ...budget,
      ...{ base: Math.max(budget.base, told.base), used, granted: mostOf(budget.granted, used) },
    };
  }
  return own ? { ...own, shares } : { host: heard.host, shares, own: {} };
}

function mostOf(one: Readonly<Record<string, number>>, other: Readonly<Record<string, number>>) {
  const both = { ...one };
  for (const [host, amount] of Object.entries(other)) both[host] = Math.max(both[host] ?? 0, amount);
  return both;
}
