import type { NetworkConfig } from '../../../core/adapters/router.ts';
import { fieldsOf, ipv6Enabled, isWan, stringsOf } from '../network-config.ts';
import { type Instance, type ReapplyPlan, viaInterfaces } from '../reapply.ts';
import type { KernelStep } from './driver.ts';

/** What a plan means for the kernel. Parts that only make files (DNS, DHCP) ask nothing of it. */
export function kernelSteps(plan: ReapplyPlan, after: NetworkConfig): KernelStep[] {
  const defaults = new Set(viaInterfaces(after.routing));
  const steps: KernelStep[] = [];
  for (const { plugin, name } of plan.removed)
    if (plugin === 'interface') steps.push({ step: 'removeLink', intf: name });
  for (const instance of plan.applied)
    if (instance.plugin === 'interface') steps.push(...interfaceSteps(instance, defaults));
  if ([...plan.removed, ...plan.applied].some(({ plugin }) => plugin === 'routing'))
    steps.push(...routingSteps(plan, defaults));
  return steps;
}

/** `flushIP(6)` → `applyIpv6Settings()` → `changeRoutingTables()`, once the link and IPv4 stand (R15). */
function interfaceSteps(
  { name: intf, kind = '', value }: Instance,
  defaults: ReadonlySet<string>,
): KernelStep[] {
  const fields = fieldsOf(value);
  const up = fields.enabled !== false;
  const wan = isWan(fields);
  const client = wan && fields.dhcp6 !== undefined;
  const [delegateFrom] = stringsOf(fields.ipv6DelegateFrom);
  return [
    { step: 'setLink', intf, kind, lower: stringsOf(fields.intf), up },
    { step: 'applyIpv4Settings', intf, addresses: [...stringsOf(fields.ipv4), ...stringsOf(fields.ipv4s)] },
    { step: 'flushIP', intf, family: 6 },
    {
      step: 'applyIpv6Settings',
      intf,
      enabled: ipv6Enabled(fields) || client,
      // A WAN with a DHCPv6 client ignores static addresses; on a LAN they stand beside a delegated one (R16).
      addresses: client ? [] : stringsOf(fields.ipv6),
      ...(delegateFrom !== undefined && { delegateFrom }),
      ...(client && { client: true as const }),
    },
    { step: 'changeRoutingTables', intf, defaultRoute: defaults.has(intf) },
  ];
}

/** The default policy changed: devices that carry it, or did, and are not reapplied anyway. */
function routingSteps(plan: ReapplyPlan, defaults: ReadonlySet<string>): KernelStep[] {
  const gone = new Set(plan.removed.filter(({ plugin }) => plugin === 'interface').map(({ name }) => name));
  const before = plan.replaced.flatMap(({ value }) => viaInterfaces(value));
  const devices = new Set([...before, ...defaults].filter((name) => !gone.has(name)));
  return [...devices].map((intf) => ({
    step: 'changeRoutingTables',
    intf,
    defaultRoute: defaults.has(intf),
  }));
}
