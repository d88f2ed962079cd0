import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { interfacesOf, isWan, stringsOf } from '../network-config.ts';
import { addressSets, globalNetwork, type Held } from './address-sets.ts';

/** One side that packets come from and go to. */
export interface Network {
  readonly intf: string;
  readonly label: string;
  readonly wan: boolean;
  /** Fenced off from other networks by its own policy. */
  readonly isolated: boolean;
  /** Of a network with a uuid. */
  readonly set?: string;
  /** The networks of its addresses, both families, e.g. `10.77.10.0/24`. */
  readonly prefixes: readonly string[];
}

/** The interfaces of a config as networks. @param held addresses that an interface has now; else those of the config */
export function networksOf(config: NetworkConfig, held?: Held): Network[] {
  const sets = new Map(addressSets(config).map((set) => [set.intf, set]));
  return interfacesOf(config).map(({ name: intf, config: fields }) => {
    const set = sets.get(intf);
    const now = held?.(intf);
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

/** The network that holds an address, and by which of its prefixes: the longest that fits. */
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
