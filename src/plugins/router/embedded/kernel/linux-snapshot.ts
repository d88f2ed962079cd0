/** The network as `ip -json -details` prints it, read before a change so that the change can be undone. */
import { isObject } from '../../../../core/kernel/json.ts';
import { stringsOf } from '../../config/network-config.ts';
import { type InterfaceState, type LinkFacts, NO_FACTS } from './driver.ts';
import type { IpBatch } from './linux-batch.ts';
import { isDelegatedPrefix, isRunning } from './monitor-lines.ts';

export interface LinuxAddress {
  readonly family: 4 | 6;
  /** With prefix length. */
  readonly address: string;
  readonly linkLocal: boolean;
  /** From a DHCP client or an advertisement, so the router must not remove it. */
  readonly dynamic: boolean;
}

export interface LinuxRoute {
  readonly family: 4 | 6;
  readonly destination: string;
  readonly gateway?: string;
  readonly devices: readonly string[];
  /** Name or number: `kernel`, `static`, ours. */
  readonly protocol: string;
  readonly metric?: number;
  readonly table?: string;
  readonly scope?: string;
  readonly source?: string;
}

export interface LinuxLink {
  readonly name: string;
  readonly up: boolean;
  /** It is up and has a carrier; absent for a link that this apply made. */
  readonly running?: boolean;
  /** `vlan`, `bridge`, `veth`, …; absent for hardware. */
  readonly kind?: string;
  /** The device below a VLAN. */
  readonly lower?: string;
  readonly vid?: number;
  readonly master?: string;
  readonly addresses: readonly LinuxAddress[];
  /** Absent for a link that this apply made. */
  readonly facts?: LinkFacts;
}

export interface Snapshot {
  readonly links: ReadonlyMap<string, LinuxLink>;
  readonly routes: readonly LinuxRoute[];
  /** Prefixes that a DHCPv6 client was delegated, by the routes that drop what no leg of them takes. */
  readonly delegated: readonly string[];
}

/** The protocol number of our own routes (rtnetlink leaves 5 to 255 to programs). */
export const OWN_PROTOCOL = '158';

export async function readSnapshot(batch: IpBatch): Promise<Snapshot> {
  const links = (await batch.ask('address show')).map(linkOf);
  const found = await batch.ask('route show table all');
  return {
    links: new Map(links.map((link) => [link.name, link])),
    routes: found.flatMap(routeOf),
    delegated: [...new Set(found.flatMap(delegationOf))],
  };
}

/** In the form that all drivers share. */
export function stateOf({ links, routes }: Snapshot, intf: string): InterfaceState | undefined {
  const link = links.get(intf);
  if (!link) return undefined;
  const of = (family: 4 | 6) =>
    link.addresses.filter((one) => one.family === family).map(({ address }) => address);
  const own = routes.filter(({ devices }) => devices.includes(intf));
  return {
    up: link.up,
    ip4: of(4),
    ip6: of(6),
    routes: own.map(({ family, destination, gateway, protocol }) => ({
      family,
      destination,
      ...(gateway !== undefined && { via: gateway }),
      origin: protocol === OWN_PROTOCOL ? 'router' : protocol,
    })),
    link: link.facts ?? NO_FACTS,
  };
}

/** The state of every device, by name. */
export function statesOf(now: Snapshot): ReadonlyMap<string, InterfaceState> {
  const states = [...now.links.keys()].flatMap((intf): [string, InterfaceState][] => {
    const state = stateOf(now, intf);
    return state ? [[intf, state]] : [];
  });
  return new Map(states);
}

type Fields = Readonly<Record<string, unknown>>;

function linkOf(found: Fields): LinuxLink {
  const info = fields(found.linkinfo);
  const vid = fields(info.info_data).id;
  const kind = text(info.info_kind);
  const lower = text(found.link);
  const master = text(found.master);
  const addresses = Array.isArray(found.addr_info) ? found.addr_info.filter(isObject).flatMap(addressOf) : [];
  return {
    name: text(found.ifname) ?? '',
    up: stringsOf(found.flags).includes('UP'),
    running: isRunning(stringsOf(found.flags)),
    addresses,
    facts: factsOf(found),
    ...(kind !== undefined && { kind }),
    ...(lower !== undefined && { lower }),
    ...(kind === 'vlan' && typeof vid === 'number' && { vid }),
    ...(master !== undefined && { master }),
  };
}

/** Counters are there only where they were asked for. */
function factsOf({ address, mtu, flags, operstate, stats64, link_type }: Fields): LinkFacts {
  const has = (flag: string) => stringsOf(flags).includes(flag);
  const bytes = (side: 'rx' | 'tx') => fields(fields(stats64)[side]).bytes;
  return {
    mac: link_type === 'none' ? null : (text(address) ?? null),
    mtu: mtu === undefined ? null : String(mtu),
    carrier: has('UP') ? (has('LOWER_UP') ? '1' : '0') : null,
    duplex: null,
    speed: null,
    operstate: text(operstate)?.toLowerCase() ?? null,
    txBytes: bytes('tx') === undefined ? null : String(bytes('tx')),
    rxBytes: bytes('rx') === undefined ? null : String(bytes('rx')),
  };
}

function addressOf({ family, local, prefixlen, scope, dynamic }: Fields): LinuxAddress[] {
  if (family !== 'inet' && family !== 'inet6') return [];
  return [
    {
      family: family === 'inet' ? 4 : 6,
      address: `${local}/${prefixlen}`,
      linkLocal: scope === 'link',
      dynamic: dynamic === true,
    },
  ];
}

/** Routes that people and daemons add. The kernel maintains the table of local addresses itself. */
function routeOf(found: Fields): LinuxRoute[] {
  const destination = text(found.dst);
  const type = text(found.type) ?? 'unicast';
  if (destination === undefined || type !== 'unicast' || found.table === 'local') return [];
  const hops = Array.isArray(found.nexthops) ? found.nexthops.filter(isObject) : [];
  const devices = hops.length > 0 ? hops.flatMap(({ dev }) => stringsOf(dev)) : stringsOf(found.dev);
  const gateway = text(found.gateway);
  const family = [destination, gateway ?? '', text(found.prefsrc) ?? ''].some((one) => one.includes(':'));
  const optional = {
    gateway,
    table: text(found.table),
    scope: text(found.scope),
    source: text(found.prefsrc),
  };
  const present = Object.entries(optional).filter(([, value]) => value !== undefined);
  return [
    {
      // Only `pref`, which IPv6 routes alone have, shows the family of a default route without a gateway.
      family: family || found.pref !== undefined ? 6 : 4,
      destination,
      devices,
      protocol: text(found.protocol) ?? 'boot',
      ...(typeof found.metric === 'number' && { metric: found.metric }),
      ...Object.fromEntries(present),
    },
  ];
}

function delegationOf({ type, dst }: Fields): string[] {
  const isDropped = type === 'unreachable' || type === 'blackhole' || type === 'prohibit';
  return isDropped && typeof dst === 'string' && isDelegatedPrefix(dst) ? [dst] : [];
}

function fields(value: unknown): Fields {
  return isObject(value) ? value : {};
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
