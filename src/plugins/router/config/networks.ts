/** The networks of a config, their prefixes, and the address sets by which the packet filter knows them. */
import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { interfacesOf, isWan, stringsOf } from './network-config.ts';

/** Characters of a network's uuid in the name of its set. */
const UUID_PART = 13;

/** The address set of one network. */
export interface AddressSet {
  /** `c_net_<uuid13>_set6`. */
  readonly name: string;
  readonly intf: string;
  /** The network's display name; the interface's where it has none. */
  readonly label: string;
  readonly uuid: string;
  /** IPv6 networks of the interface's global-scope addresses, e.g. `fd00:10::/64`; sorted, each once. */
  readonly prefixes: readonly string[];
}

/** Addresses with prefix length that an interface has, e.g. what the kernel says. */
export type AddressLookup = (intf: string) => readonly string[] | undefined;

/** Names that two or more networks share, so that a packet of one counts as a packet of the other (R34). */
export interface SetCollision {
  readonly name: string;
  readonly networks: readonly { readonly intf: string; readonly label: string; readonly uuid: string }[];
}

/**
 * The IPv6 address sets that follow from a config: one for every network (whatever is no WAN and has a uuid), in the
 * order of the config (R21). A network without a global-scope address has an empty set.
 *
 * @param currentAddresses the addresses that an interface has now, delegated ones among them; without it, or for an
 * interface that it does not know, the static addresses of the config are used
 */
export function addressSets(config: NetworkConfig, currentAddresses?: AddressLookup): AddressSet[] {
  return interfacesOf(config).flatMap(({ name: intf, config: fields }) => {
    const meta = isObject(fields.meta) ? fields.meta : {};
    const { uuid } = meta;
    if (typeof uuid !== 'string' || uuid === '' || isWan(fields) || meta.type === undefined) return [];
    const prefixes = new Set((currentAddresses?.(intf) ?? stringsOf(fields.ipv6)).flatMap(globalNetwork));
    const label = typeof meta.name === 'string' && meta.name !== '' ? meta.name : intf;
    return [{ name: setName(uuid), intf, label, uuid, prefixes: [...prefixes].sort() }];
  });
}

function setName(uuid: string): string {
  return `c_net_${uuid.slice(0, UUID_PART)}_set6`;
}

/** The prefixes that each set must hold, by its name, sorted. Two networks of one set name share the set. */
export function prefixesBySet(
  config: NetworkConfig,
  currentAddresses?: AddressLookup,
): Map<string, string[]> {
  const byName = Map.groupBy(addressSets(config, currentAddresses), ({ name }) => name);
  return new Map(
    [...byName].map(([name, same]) => [name, [...new Set(same.flatMap(({ prefixes }) => prefixes))].sort()]),
  );
}

/** Networks of a config whose sets would have one name (R34). */
export function setCollisions(config: NetworkConfig): SetCollision[] {
  const byName = Map.groupBy(addressSets(config), ({ name }) => name);
  return [...byName].flatMap(([name, sets]) => {
    const networks = sets.map(({ intf, label, uuid }) => ({ intf, label, uuid }));
    return networks.length > 1 ? [{ name, networks }] : [];
  });
}

/** A collision as a sentence for a person. */
export function collisionText({ name, networks }: SetCollision): string {
  const who = networks.map(({ intf, label }) => (label === intf ? intf : `${label} (${intf})`)).join(' and ');
  return `${who} share the address set ${name}, because their uuids begin alike: the policy of one applies to the other`;
}

/**
 * The network of an IPv6 address with prefix length, when it has global scope (a ULA has, a link-local has not);
 * nothing otherwise.
 */
export function globalNetwork(cidr: string): string[] {
  if (!ipaddr.IPv6.isValidCIDR(cidr)) return [];
  const [address, bits] = ipaddr.IPv6.parseCIDR(cidr);
  const scoped = ['linkLocal', 'multicast', 'loopback', 'unspecified'].includes(address.range());
  return scoped ? [] : [`${ipaddr.IPv6.networkAddressFromCIDR(cidr)}/${bits}`];
}

/** A network as sender or receiver of packets. */
export interface Network {
  readonly intf: string;
  readonly label: string;
  readonly wan: boolean;
  /** Isolated from other networks by its own policy. */
  readonly isolated: boolean;
  /** Name of its address set, where the network has a uuid. */
  readonly set?: string;
  /** The networks of its addresses, both families, e.g. `10.77.10.0/24`. */
  readonly prefixes: readonly string[];
}

/** The interfaces of a config as networks. @param currentAddresses addresses that an interface has now; else those of the config */
export function networksOf(config: NetworkConfig, currentAddresses?: AddressLookup): Network[] {
  const sets = new Map(addressSets(config).map((set) => [set.intf, set]));
  return interfacesOf(config).map(({ name: intf, config: fields }) => {
    const set = sets.get(intf);
    const now = currentAddresses?.(intf);
    const six = (now ?? stringsOf(fields.ipv6)).flatMap(globalNetwork);
    const four = [...stringsOf(fields.ipv4), ...stringsOf(fields.ipv4s), ...(now ?? [])].flatMap(network4);
    return {
      intf,
      label: set?.label ?? intf,
      wan: isWan(fields),
      isolated: fields.isolated === true,
      ...(set && { set: set.name }),
      prefixes: [...new Set([...six, ...four])],
    };
  });
}

/** The network that contains an address, and the longest of its prefixes that does. */
export function holderOf(
  networks: readonly Network[],
  address: ipaddr.IPv4 | ipaddr.IPv6,
): { readonly network: Network; readonly prefix: string } | undefined {
  let best: { network: Network; prefix: string; bits: number } | undefined;
  for (const network of networks) {
    for (const prefix of network.prefixes) {
      const [base, bits] = ipaddr.parseCIDR(prefix);
      if (base.kind() !== address.kind() || !address.match(base, bits)) continue;
      if (!best || bits > best.bits) best = { network, prefix, bits };
    }
  }
  return best && { network: best.network, prefix: best.prefix };
}

function network4(cidr: string): string[] {
  if (!ipaddr.IPv4.isValidCIDR(cidr)) return [];
  return [`${ipaddr.IPv4.networkAddressFromCIDR(cidr)}/${ipaddr.IPv4.parseCIDR(cidr)[1]}`];
}
