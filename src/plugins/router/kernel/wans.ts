import ipaddr from 'ipaddr.js';

/** What is known of a WAN beside the config. */
export interface Wan {
  readonly up: boolean;
  /** The prefix that it was delegated last, e.g. `2001:db8:7::/56`; absent while none is known. */
  readonly prefix?: string | undefined;
}

/** By interface name; a WAN without an entry is up. */
export type Wans = ReadonlyMap<string, Wan>;

/** Legs get /64s (RFC 4291: what SLAAC needs). */
const LEG_BITS = 64;

/**
 * The address of a leg in the prefix that its WAN was delegated: one /64 a leg, `::1` in it.
 *
 * @param place of the leg among those that get theirs from this WAN, from 0
 * @returns undefined when no prefix is known, or it has no /64 left for this leg
 */
export function delegatedAddress(wans: Wans, wan: string, place: number): string | undefined {
  const prefix = wans.get(wan)?.prefix;
  if (prefix === undefined || place < 0 || !isDelegable(prefix)) return undefined;
  const [address, bits] = ipaddr.IPv6.parseCIDR(prefix);
  if (place >= 2 ** Math.min(LEG_BITS - bits, 30)) return undefined;
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/${bits}`);
  const parts = [...network.parts];
  parts[3] = (parts[3] ?? 0) + (place & 0xffff);
  parts[2] = (parts[2] ?? 0) + (place >>> 16);
  parts[7] = 1;
  return `${new ipaddr.IPv6(parts).toString()}/${LEG_BITS}`;
}

/** Whether a text is an IPv6 prefix that holds at least one /64. */
export function isDelegable(prefix: string): boolean {
  if (!/^[0-9a-fA-F:]+\/\d{1,3}$/.test(prefix) || !ipaddr.IPv6.isValidCIDR(prefix)) return false;
  const [address, bits] = ipaddr.IPv6.parseCIDR(prefix);
  return bits >= 16 && bits <= LEG_BITS && address.range() !== 'unspecified';
}
