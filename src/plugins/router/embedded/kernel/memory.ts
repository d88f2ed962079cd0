import { setImmediate } from 'node:timers/promises';
import ipaddr from 'ipaddr.js';
import {
  type InterfaceState,
  type KernelDriver,
  KernelRefusal,
  type KernelStep,
  type LinkFacts,
  type Route,
  type Undo,
} from './driver.ts';

/** Steps between two yields to the event loop, so that a large config does not block other work. */
const STEPS_PER_BATCH = 200;

/**
 * A faithful model of what a reapply does to links, addresses and routes, where the network of the machine must not
 * be touched. An apply works on a draft that takes the model's place when its last step is done.
 */
export class MemoryKernel implements KernelDriver {
  #devices: Devices = new Map();
  /** Multipath routes that came from outside; an apply leaves them alone. */
  readonly #multipath: Route[] = [];

  async apply(steps: readonly KernelStep[], signal: AbortSignal): Promise<Undo> {
    const before = this.#devices;
    const draft = new Map(before);
    for (const [index, step] of steps.entries()) {
      if (index % STEPS_PER_BATCH === STEPS_PER_BATCH - 1) await setImmediate();
      signal.throwIfAborted();
      runStep(draft, step);
    }
    this.#devices = draft;
    return async () => {
      this.#devices = before;
    };
  }

  async state(intf: string): Promise<InterfaceState | undefined> {
    const device = this.#devices.get(intf);
    if (!device) return undefined;
    return this.#stateOf(intf, device);
  }

  async states(): Promise<ReadonlyMap<string, InterfaceState>> {
    return new Map([...this.#devices].map(([intf, device]) => [intf, this.#stateOf(intf, device)]));
  }

  async hardware(): Promise<readonly string[]> {
    return [...this.#devices].flatMap(([intf, { kind }]) => (HARDWARE.has(kind) ? [intf] : []));
  }

  #stateOf(intf: string, { up, ip4, ip6, routes, kind }: Device): InterfaceState {
    const shared = this.#multipath.filter(({ devices }) => devices.includes(intf));
    const all = [...routes, ...shared].map(({ devices: _, ...route }) => route);
    return { up, ip4, ip6, routes: all, link: linkFacts(intf, kind, up) };
  }

  async addresses(interfaces: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const addresses = interfaces.flatMap((intf): [string, readonly string[]][] => {
      const device = this.#devices.get(intf);
      return device ? [[intf, device.ip6]] : [];
    });
    return new Map(addresses);
  }

  /** Adds a route out of band, as `ip route add` would. @throws KernelRefusal there is no such device */
  addRoute(route: Route): void {
    const [first] = route.devices.map((name) => ({ name, device: this.#device(name) }));
    if (route.devices.length > 1) this.#multipath.push(route);
    else if (first) {
      const { name, device } = first;
      this.#devices = new Map(this.#devices).set(name, { ...device, routes: [...device.routes, route] });
    }
  }

  #device(intf: string): Device {
    const device = this.#devices.get(intf);
    if (!device) throw new KernelRefusal(`Cannot find device "${intf}"`);
    return device;
  }
}

/** A device of the model; never changed in place. */
export interface Device {
  readonly kind: string;
  readonly up: boolean;
  readonly ip4: readonly string[];
  readonly ip6: readonly string[];
  /** Those that lead through this device alone. */
  readonly routes: readonly Route[];
}

export type Devices = ReadonlyMap<string, Device>;
type Draft = Map<string, Device>;
type Step<Name extends KernelStep['step']> = Extract<KernelStep, { step: Name }>;

/** Kinds that are hardware: they stay when the config no longer names them. */
const HARDWARE: ReadonlySet<string> = new Set(['phy', 'wlan']);
/** The networks and gateways of the WANs (RFC 3849, RFC 5737). */
const WAN_NETWORK = '2001:db8:ffff::';
const GATEWAY4 = '192.0.2.1';
const GATEWAY6 = 'fe80::1';

/** Changes the draft as the kernel would. @throws KernelRefusal with the kernel's words */
function runStep(draft: Draft, step: KernelStep): void {
  switch (step.step) {
    case 'removeLink':
      removeLink(draft, step.intf);
      break;
    case 'setLink':
      setLink(draft, step);
      break;
    case 'applyIpv4Settings':
      applyIpv4Settings(draft, step);
      break;
    case 'flushIP':
      flushIP(draft, step);
      break;
    case 'applyIpv6Settings':
      applyIpv6Settings(draft, step);
      break;
    case 'changeRoutingTables':
      changeRoutingTables(draft, step);
      break;
  }
}

function removeLink(draft: Draft, intf: string): void {
  const device = draft.get(intf);
  if (device && HARDWARE.has(device.kind))
    draft.set(intf, { kind: device.kind, up: false, ip4: [], ip6: [], routes: [] });
  else draft.delete(intf);
}

function setLink(draft: Draft, { intf, kind, lower, up }: Step<'setLink'>): void {
  for (const device of lower) deviceOf(draft, device);
  const { ip4 = [], ip6 = [], routes = [] } = draft.get(intf) ?? {};
  draft.set(intf, { kind, up, ip4, ip6, routes: up ? routes : [] });
}

function applyIpv4Settings(draft: Draft, { intf, addresses }: Step<'applyIpv4Settings'>): void {
  for (const address of addresses)
    if (!ipaddr.IPv4.isValidCIDR(address)) throw new KernelRefusal(`Invalid ipv4 address for ${intf}`);
  draft.set(intf, connected({ ...deviceOf(draft, intf), ip4: addresses }, intf, 4));
}

function flushIP(draft: Draft, { intf, family }: Step<'flushIP'>): void {
  const device = deviceOf(draft, intf);
  if (family === 4) {
    draft.set(intf, connected({ ...device, ip4: [] }, intf, 4));
    return;
  }
  // Down: every single-nexthop route goes, also those from outside. Up: only those of the remaining addresses come back.
  draft.set(intf, connected({ ...device, ip6: [], routes: [] }, intf, 4));
}

function applyIpv6Settings(
  draft: Draft,
  { intf, enabled, addresses, delegateFrom, delegated: address6, client }: Step<'applyIpv6Settings'>,
): void {
  for (const address of addresses)
    if (!ipaddr.IPv6.isValidCIDR(address)) throw new KernelRefusal(`Invalid ipv6 address for ${intf}`);
  const device = deviceOf(draft, intf);
  const global = [
    ...addresses,
    ...(delegateFrom === undefined ? [] : delegated(draft, intf, delegateFrom, address6)),
    ...(client ? [`${WAN_NETWORK}${interfaceId(intf)}/64`] : []),
  ];
  const ip6 = enabled && device.up ? [...new Set([...global, `fe80::${interfaceId(intf)}/64`])] : [];
  draft.set(intf, connected({ ...device, ip6 }, intf, 6));
}

function changeRoutingTables(draft: Draft, { intf, defaultRoute }: Step<'changeRoutingTables'>): void {
  const device = draft.get(intf);
  if (!device) return; // nothing leads through a device that is not there
  const routes = device.routes.filter(({ origin }) => origin !== 'router');
  const own = { origin: 'router', devices: [intf], destination: 'default' };
  if (device.up && defaultRoute) {
    routes.push({ family: 4, via: GATEWAY4, ...own });
    if (device.ip6.length > 0) routes.push({ family: 6, via: GATEWAY6, ...own });
  }
  draft.set(intf, { ...device, routes });
}

/** The device with the routes that follow from its addresses of a family, and no others of that kind. */
function connected(device: Device, intf: string, family: 4 | 6): Device {
  const kept = device.routes.filter((route) => !(route.origin === 'kernel' && route.family === family));
  const addresses = device.up ? (family === 4 ? device.ip4 : device.ip6) : [];
  const networks = new Set(addresses.map((address) => networkOf(address, family)));
  const added = [...networks].map(
    (destination): Route => ({ family, destination, origin: 'kernel', devices: [intf] }),
  );
  return { ...device, routes: [...kept, ...added] };
}

function networkOf(address: string, family: 4 | 6): string {
  const bits = address.slice(address.indexOf('/'));
  const { IPv4, IPv6 } = ipaddr;
  const network = family === 4 ? IPv4.networkAddressFromCIDR(address) : IPv6.networkAddressFromCIDR(address);
  return `${network}${bits}`;
}

/** One /64 of the prefix that the WAN's client was delegated: the given one, else one that follows from the names. */
function delegated(draft: Draft, intf: string, wan: string, given: string | undefined): string[] {
  const device = draft.get(wan);
  const hasPrefix = device?.up && device.ip6.some((address) => address.startsWith(WAN_NETWORK));
  if (!hasPrefix) return [];
  if (given !== undefined) return [given];
  const [prefix, subnet] = [wan, intf].map((name) => (hash(name) & 0xffff).toString(16));
  return [`2001:db8:${prefix}:${subnet}::1/64`];
}

/** Four hextets that follow from the name, as they would from a hardware address. */
function interfaceId(intf: string): string {
  const id = hash(intf);
  return `5e:${(id >>> 16).toString(16)}:${(id & 0xffff).toString(16)}:1`;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return value;
}

/** What the model has: no counters, and a hardware address that follows from the name. */
function linkFacts(intf: string, kind: string, up: boolean): LinkFacts {
  const isTunnel = kind === 'wireguard' || kind === 'openvpn';
  const id = hash(intf).toString(16).padStart(8, '0');
  return {
    mac: isTunnel ? null : `02:5e${id.replace(/../g, ':$&')}`,
    mtu: kind === 'wireguard' ? '1420' : '1500',
    carrier: up ? '1' : null,
    duplex: up && !isTunnel ? 'full' : null,
    speed: up && !isTunnel ? '1000' : null,
    operstate: up ? 'up' : 'down',
    txBytes: '0',
    rxBytes: '0',
  };
}

function deviceOf(draft: Draft, intf: string): Device {
  const device = draft.get(intf);
  if (!device) throw new KernelRefusal(`Cannot find device "${intf}"`);
  return device;
}
