import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { delegatingLegs, fieldsOf, interfaceOf, ipv6Enabled, isWan, stringsOf } from '../network-config.ts';
import { type Instance, type ReapplyPlan, viaInterfaces } from '../reapply.ts';
import type { KernelStep } from './driver.ts';
import { delegatedAddress, type Wans } from './wans.ts';

const NO_WANS: Wans = new Map();

/**
 * What a plan means for the kernel. Parts that only make files (DNS, DHCP) ask nothing of it.
 *
 * @param wans what is known of the WANs beside the config
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
      ...(typeof fields.vid === 'number' && { vid: fields.vid }),
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

/** A function that is asked the same for thousands of legs. */
function remembering<T>(compute: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}

/** Gateways that the config itself names; what a DHCP client was given is the client's. */
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
