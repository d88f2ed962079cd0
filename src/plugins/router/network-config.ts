import type { NetworkConfig } from '../../core/contracts/router.ts';
import { isObject } from '../../core/kernel/json.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One interface of a config, whatever map of `interface` it stands in. */
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

/** WANs are told from LANs by what the app calls them. */
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
