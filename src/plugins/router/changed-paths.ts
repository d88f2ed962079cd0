import type { NetworkConfig } from '../../core/contracts/router.ts';
import { isObject, jsonEqual } from '../../core/kernel/json.ts';

/** More differing paths than this say no more than their number. */
const MOST = 40;
/** A path ends at a field of an instance: `interface.vlan.eth1.10.ipv6`, `dns.eth1.10.nameservers`. */
const DEPTH = 3;
const INTERFACE_DEPTH = 4;

/**
 * The paths at which two configs differ, without any value: what a record and the history may say of a change.
 * The ncid, which every write changes, is left out.
 */
export function changedPaths(before: NetworkConfig, after: NetworkConfig): string[] {
  const paths: string[] = [];
  for (const key of keysOf(before, after)) {
    if (key === 'ncid') continue;
    walk(before[key], after[key], key, key === 'interface' ? INTERFACE_DEPTH : DEPTH, paths);
  }
  return paths.length > MOST ? [...paths.slice(0, MOST), `and ${paths.length - MOST} more`] : paths;
}

function walk(before: unknown, after: unknown, path: string, depth: number, paths: string[]): void {
  if (jsonEqual(before, after)) return;
  if (depth === 1 || !isObject(before) || !isObject(after)) {
    paths.push(path.slice(0, 200));
    return;
  }
  for (const key of keysOf(before, after)) walk(before[key], after[key], `${path}.${key}`, depth - 1, paths);
}

function keysOf(a: object, b: object): Set<string> {
  return new Set([...Object.keys(a), ...Object.keys(b)]);
}
