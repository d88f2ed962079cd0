import ipaddr from 'ipaddr.js';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import {
  delegatingLegs,
  fieldsOf,
  interfaceOf,
  ipv6Enabled,
  isWan,
  stringsOf,
} from '../../config/network-config.ts';
import { type Instance, type ReapplyPlan, viaInterfaces } from '../../config/reapply.ts';
import type { KernelStep } from './driver.ts';

const NO_WANS: Wans = new Map();

/**
 * The steps of a plan for the kernel. Parts that only write files (DNS, DHCP) need none.
 *
 * @param wans the state of the WANs that is not part of the config
 */
export function kernelSteps(plan: ReapplyPlan, after: NetworkConfig, wans: Wans = NO_WANS): KernelStep[] {
  const defaults = new Set(viaInterfaces(after.routing));
  const legsOf = remembering((wan) => new Map(delegatingLegs(after, wan).map((leg, place) => [leg, place])));
  const delegated = (wan: string, leg: string) => delegatedAddress(wans, wan, legsOf(wan).get(leg) ?? -1);
  const steps: KernelStep[] = [];
  for (const { plugin, name } of plan.removed)
    if (plugin === 'interface') steps.push({ step: 'removeLink', intf: name });
  for (const instance of plan.applied)
    if (instance.plugin === 'interface') steps.push(...interfaceSteps(instance, wans, delegated, defaults));
  if ([...plan.removed, ...plan.applied].some(({ plugin }) => plugin === 'routing'))
    steps.push(...routingSteps(plan, after, defaults));
  return steps;
}

/** `flushIP(6)` → `applyIpv6Settings()` → `changeRoutingTables()`, once the link and IPv4 stand (R15). */
function interfaceSteps(
  { name: intf, kind = '', value }: Instance,
  wans: Wans,
  delegatedOf: (wan: string, leg: string) => string | undefined,
  defaults: ReadonlySet<string>,
): KernelStep[] {
  const fields = fieldsOf(value);
  const up = fields.enabled !== false && wans.get(intf)?.up !== false;
  const wan = isWan(fields);
  const client = wan && fields.dhcp6 !== undefined;
  const [delegateFrom] = stringsOf(fields.ipv6DelegateFrom);
  const delegated = delegateFrom === undefined ? undefined : delegatedOf(delegateFrom, intf);
  return [
    {
      step: 'setLink',
      intf,
      kind,
      lower: stringsOf(fields.intf),
      up,
      ...(fields.vid !== undefined && { vid: Number(fields.vid) }),
    },
    { step: 'applyIpv4Settings', intf, addresses: [...stringsOf(fields.ipv4), ...stringsOf(fields.ipv4s)] },
    { step: 'flushIP', intf, family: 6 },
    {
      step: 'applyIpv6Settings',
      intf,
      enabled: ipv6Enabled(fields) || client,
      // A WAN with a DHCPv6 client ignores static addresses; on a LAN they stand beside a delegated one (R16).
      addresses: client ? [] : stringsOf(fields.ipv6),
      ...(delegateFrom !== undefined && { delegateFrom }),
      ...(delegated !== undefined && { delegated }),
      ...(client && { client: true as const }),
    },
    { step: 'changeRoutingTables', intf, defaultRoute: defaults.has(intf), ...gatewaysOf(fields) },
  ];
}

/** Caches a function that is called with the same few keys for thousands of legs. */
function remembering<T>(compute: (key: string) => T): (key: string) => T {
  const cache = new Map<string, T>();
  return (key) => {
    const value = cache.get(key) ?? compute(key);
    cache.set(key, value);
    return value;
  };
}

/** Gateways that the config itself names; those of a DHCP client belong to the client. */
function gatewaysOf({ gateway, gateway6 }: Readonly<Record<string, unknown>>): {
  gateway?: string;
  gateway6?: string;
} {
  return {
    ...(typeof gateway === 'string' && { gateway }),
    ...(typeof gateway6 === 'string' && { gateway6 }),
  };
}

/** The default policy changed: devices that carry it, or did, and are not reapplied anyway. */
function routingSteps(plan: ReapplyPlan, after: NetworkConfig, defaults: ReadonlySet<string>): KernelStep[] {
  const gone = new Set(plan.removed.filter(({ plugin }) => plugin === 'interface').map(({ name }) => name));
  const before = plan.replaced.flatMap(({ value }) => viaInterfaces(value));
  const devices = new Set([...before, ...defaults].filter((name) => !gone.has(name)));
  return [...devices].map((intf) => ({
    step: 'changeRoutingTables',
    intf,
    defaultRoute: defaults.has(intf),
    ...gatewaysOf(interfaceOf(after, intf)?.config ?? {}),
  }));
}

/** The state of a WAN that is not part of the config. */
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
