/** Rules that need more than one field of a config (R36): names that others refer to, and networks that overlap. */
import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { fieldsOf, type InterfaceEntry, interfacesOf, isWan, stringsOf } from './network-config.ts';

/** A field that does not fit the rest of the config. */
export interface Misfit {
  /** Keys from the top of the config to the field. */
  readonly path: readonly (string | number)[];
  readonly reason: string;
}

/**
 * Looks for fields that name an interface the config does not have, and for IPv4 networks of two interfaces that overlap.
 * A real daemon refuses such a config, too: an overlap before it applies anything, a missing interface while it does.
 *
 * @param config whose fields have the right types
 * @returns all of them, in the order of the config
 */
export function misfits(config: NetworkConfig): Misfit[] {
  const interfaces = interfacesOf(config);
  const names = new Set(interfaces.map(({ name }) => name));
  return [
    ...interfaces.flatMap((entry) => missing(entry, names)),
    ...overlaps(interfaces),
    ...(['dhcp', 'dhcp6'] as const).flatMap((part) =>
      Object.keys(fieldsOf(config[part]))
        .filter((name) => !names.has(name))
        .map((name) => ({ path: [part, name], reason: NO_INTERFACE })),
    ),
    ...Object.entries(fieldsOf(config.nat)).flatMap(incompleteNat),
  ];
}

const NO_INTERFACE = 'there is no interface of that name';

/** A translation needs the way out, and an interface or subnets whose packets it is for. */
function incompleteNat([name, value]: readonly [string, unknown]): Misfit[] {
  const { in: from, out, srcSubnets } = fieldsOf(value);
  const sources = [from, srcSubnets].flatMap(stringsOf);
  if (stringsOf(out).length === 0) return [{ path: ['nat', name, 'out'], reason: 'an interface is wanted' }];
  if (sources.length > 0) return [];
  return [{ path: ['nat', name, 'in'], reason: 'an interface or srcSubnets is wanted' }];
}

function missing({ kind, name, config }: InterfaceEntry, names: ReadonlySet<string>): Misfit[] {
  const found: Misfit[] = [];
  for (const field of ['intf', 'ipv6DelegateFrom'] as const) {
    // What is off asks nobody for a prefix, but its device is made nonetheless.
    if (field === 'ipv6DelegateFrom' && config.enabled === false) continue;
    const value = config[field];
    const many = Array.isArray(value);
    for (const [index, other] of stringsOf(value).entries()) {
      const path = ['interface', kind, name, field, ...(many ? [index] : [])];
      if (other === name) found.push({ path, reason: 'an interface cannot refer to itself' });
      else if (!names.has(other)) found.push({ path, reason: NO_INTERFACE });
    }
  }
  return found;
}

interface Network {
  readonly entry: InterfaceEntry;
  readonly path: readonly (string | number)[];
  readonly first: number;
  readonly last: number;
}

/**
 * Networks of two interfaces that overlap. Two WANs may share one, and so may two addresses of one interface. The
 * networks are sorted, so that a config of thousands of legs needs no comparison of each with each.
 */
function overlaps(interfaces: readonly InterfaceEntry[]): Misfit[] {
  const sorted = interfaces
    .flatMap(networksOf)
    .map((network, place) => ({ ...network, place }))
    .sort((a, b) => a.first - b.first || b.last - a.last);
  const found: { place: number; misfit: Misfit }[] = [];
  // Networks nest or are apart, so that those that contain the next one are a stack.
  const open: (typeof sorted)[number][] = [];
  for (const network of sorted) {
    while (open.length > 0 && (open.at(-1)?.last ?? 0) < network.first) open.pop();
    const other = open.find(({ entry }) => conflict(entry, network.entry));
    if (other) {
      const [later, earlier] = other.place > network.place ? [other, network] : [network, other];
      const { kind, name } = earlier.entry;
      const reason = `it overlaps with the network of interface.${kind}.${name}`;
      found.push({ place: later.place, misfit: { path: later.path, reason } });
    }
    open.push(network);
  }
  return found.sort((a, b) => a.place - b.place).map(({ misfit }) => misfit);
}

function conflict(a: InterfaceEntry, b: InterfaceEntry): boolean {
  return a.name !== b.name && !(isWan(a.config) && isWan(b.config));
}

function networksOf(entry: InterfaceEntry): Network[] {
  return (['ipv4', 'ipv4s'] as const).flatMap((field) => {
    const value = entry.config[field];
    return stringsOf(value).map((cidr, index) => {
      const [address, bits] = ipaddr.IPv4.parseCIDR(cidr);
      const [a = 0, b = 0, c = 0, d = 0] = address.octets;
      const size = 2 ** (32 - bits);
      const number = ((a * 256 + b) * 256 + c) * 256 + d;
      const first = number - (number % size);
      const path = ['interface', entry.kind, entry.name, field, ...(Array.isArray(value) ? [index] : [])];
      return { entry, path, first, last: first + size - 1 };
    });
  });
}

/** Whether a name may be one of a part of the config besides interfaces: a free label, 64 characters at most. */
export function isLabel(name: string): boolean {
  return /^[A-Za-z0-9._:@-]{1,64}$/.test(name);
}
