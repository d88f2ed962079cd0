import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { maskText } from '../../core/host/logging/mask-text.ts';
import { isObject } from '../../core/kernel/json.ts';

/** A path of a config: its keys from the root. */
export type Path = readonly string[];

/**
 * What is left of a config when its values are taken away: enough to see what vanished from it, and no secret. Items of a
 * list become digests under a key of this process.
 */
export type Skeleton = { readonly [key: string]: Skeleton } | readonly string[] | true;

const KEY = createSecretKey(randomBytes(32));

/** Every write changes them. */
const CONTROL: ReadonlySet<string> = new Set(['ncid', 'reqId', 'ts']);

export function skeletonOf(value: unknown, isRoot = true): Skeleton {
  if (Array.isArray(value))
    return value.map((item) => createHmac('sha256', KEY).update(JSON.stringify(item)).digest('base64'));
  if (!isObject(value)) return true;
  const entries = Object.entries(value).filter(
    ([key, field]) => field !== undefined && field !== null && !(isRoot && CONTROL.has(key)),
  );
  return Object.fromEntries(entries.map(([key, field]) => [key, skeletonOf(field, false)]));
}

/**
 * The paths that are gone: the highest ones alone, so a whole interface is one path. A list that lost an item without
 * getting another in its place is named by its own path.
 */
export function vanished(before: Skeleton, after: Skeleton, path: Path = []): Path[] {
  if (isList(before)) {
    if (!isList(after)) return [];
    const lost = before.filter((item) => !after.includes(item)).length;
    const added = after.filter((item) => !before.includes(item)).length;
    return lost > added ? [path] : [];
  }
  if (before === true || after === true || isList(after)) return [];
  return Object.entries(before).flatMap(([key, field]) => {
    const present = Object.hasOwn(after, key) ? after[key] : undefined;
    return present === undefined ? [[...path, key]] : vanished(field, present, [...path, key]);
  });
}

export function isList(skeleton: Skeleton | undefined): skeleton is readonly string[] {
  return Array.isArray(skeleton);
}

/** A path for people: `interface.vlan.eth1.10.ipv6`. A key that looks like a secret is masked. */
export const pathText = (path: Path): string => maskText(path.join('.'));

/**
 * Whether a pattern of the policy names a path, something in it, or something above it. `*` stands for one key; a key
 * with dots, as `eth1.10`, may be written as it is.
 */
export function matches(pattern: string, path: Path): boolean {
  return covers(pattern.split('.'), path);
}

function covers(pattern: readonly string[], path: Path): boolean {
  const [key, ...rest] = path;
  if (pattern.length === 0 || key === undefined) return true;
  if (pattern[0] === '*') return covers(pattern.slice(1), rest);
  const parts = key.split('.');
  return parts.every((part, index) => pattern[index] === part) && covers(pattern.slice(parts.length), rest);
}

export function partAt(skeleton: Skeleton, path: Path): Skeleton | undefined {
  return path.reduce<Skeleton | undefined>(
    (at, key) => (at === undefined || at === true || isList(at) ? undefined : at[key]),
    skeleton,
  );
}

/** The paths of everything without parts of its own that is at or below a path. */
export function leavesBelow(skeleton: Skeleton, path: Path): Path[] {
  const part = partAt(skeleton, path);
  return part === undefined ? [path] : leaves(part, path);
}

function leaves(part: Skeleton, path: Path): Path[] {
  if (part === true || isList(part)) return [path];
  const below = Object.entries(part).flatMap(([key, field]) => leaves(field, [...path, key]));
  return below.length === 0 ? [path] : below;
}
