import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { isObject, jsonEqual } from '../../../core/kernel/json.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One interface of a config, from any map of `interface`. */
export interface InterfaceEntry {
  /** The map: `phy`, `vlan`, `bridge`, … */
  readonly kind: string;
  readonly name: string;
  readonly config: Fields;
}

/** All interfaces, in the order of the config. */
export function interfacesOf(config: NetworkConfig): InterfaceEntry[] {
  return Object.entries(fieldsOf(config.interface)).flatMap(([kind, map]) =>
    Object.entries(fieldsOf(map)).map(([name, entry]) => ({ kind, name, config: fieldsOf(entry) })),
  );
}

export function interfaceOf(config: NetworkConfig, name: string): InterfaceEntry | undefined {
  return interfacesOf(config).find((entry) => entry.name === name);
}

/** IPv6 is on when any of the three fields is set; an empty `ipv6` means on without an address (R16). */
export function ipv6Enabled({ ipv6, ipv6DelegateFrom, ipv6PassthroughFrom }: Fields): boolean {
  return [ipv6, ipv6DelegateFrom, ipv6PassthroughFrom].some((value) => value !== undefined && value !== null);
}

/** Whether an interface is a WAN, by the type that the app gives it. */
export function isWan({ meta }: Fields): boolean {
  return isObject(meta) && meta.type === 'wan';
}

/** The legs that get a prefix from a WAN, in the order of the config. */
export function delegatingLegs(config: NetworkConfig, wan: string): string[] {
  return interfacesOf(config)
    .filter(({ config: leg }) => stringsOf(leg.ipv6DelegateFrom).includes(wan))
    .map(({ name }) => name);
}

/** A field that may be absent, a string, or an array of strings. */
export function stringsOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((item): item is string => typeof item === 'string' && item !== '');
}

/** The value's fields; none when it is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** When more paths than this differ, only their number is given. */
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

/**
 * Fields of a posted body that control the write and are not part of the config (R4). A real daemon serves `reqId`, and
 * skips the ncid check for a body that contains the stored one.
 */
export const CONTROL_FIELDS: readonly string[] = ['transactionOp', 'transID', 'ignoreNcid', 'reqId'];

/** A copy without control fields. */
export function withoutControlFields(config: NetworkConfig): NetworkConfig {
  return Object.fromEntries(Object.entries(config).filter(([key]) => !CONTROL_FIELDS.includes(key)));
}
