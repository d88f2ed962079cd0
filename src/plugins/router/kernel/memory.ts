import ipaddr from 'ipaddr.js';
import {
  type InterfaceState,
  type KernelDriver,
  KernelRefusal,
  type KernelStep,
  type Route,
  type Undo,
} from './driver.ts';

interface Device {
  readonly kind: string;
  readonly up: boolean;
  readonly ip4: readonly string[];
  readonly ip6: readonly string[];
}

type Step<Name extends KernelStep['step']> = Extract<KernelStep, { step: Name }>;

/** Kinds that are hardware: they stay when the config no longer names them. */
const HARDWARE: ReadonlySet<string> = new Set(['phy', 'wlan']);

/**
 * A faithful model of what a reapply does to links, addresses and routes, for a box whose network must not be
 * touched. WANs with a DHCPv6 client are delegated documentation prefixes (RFC 3849); their gateways answer at
 * `fe80::1` and 192.0.2.1.
 */
export class MemoryKernel implements KernelDriver {
  #devices: ReadonlyMap<string, Device> = new Map();
  #routes: readonly Route[] = [];
  /** The subnet of a delegated prefix that each leg has, by WAN and leg. */
  readonly #subnets = new Map<string, number>();

  async apply(steps: readonly KernelStep[], signal: AbortSignal): Promise<Undo> {
    const before = { devices: this.#devices, routes: this.#routes };
    const undo = async () => {
      this.#devices = before.devices;
      this.#routes = before.routes;
    };
    try {
      for (const step of steps) {
        signal.throwIfAborted();
        this.#run(step);
      }
    } catch (error) {
      await undo();
      throw error;
    }
    return undo;
  }

  async state(intf: string): Promise<InterfaceState | undefined> {
    const device = this.#devices.get(intf);
    if (!device) return undefined;
    const routes = this.#routes
      .filter(({ devices }) => devices.includes(intf))
      .map(({ devices: _, ...route }) => route);
    return { up: device.up, ip4: device.ip4, ip6: device.ip6, routes };
  }

  /** Adds a route out of band, as `ip route add` would. */
  addRoute(route: Route): void {
    for (const device of route.devices) this.#device(device);
    this.#routes = [...this.#routes, route];
  }

  #run(step: KernelStep): void {
    switch (step.step) {
      case 'removeLink':
        this.#removeLink(step.intf);
        break;
      case 'setLink':
        this.#setLink(step);
        break;
      case 'applyIpv4Settings':
        this.#applyIpv4Settings(step);
        break;
      case 'flushIP':
        this.#flushIP(step);
        break;
      case 'applyIpv6Settings':
        this.#applyIpv6Settings(step);
        break;
      case 'changeRoutingTables':
        this.#changeRoutingTables(step);
        break;
    }
  }

  #removeLink(intf: string): void {
    const device = this.#devices.get(intf);
    if (!device) return;
    this.#routes = this.#routes.filter(({ devices }) => !devices.includes(intf));
    for (const key of this.#subnets.keys()) if (key.endsWith(` ${intf}`)) this.#subnets.delete(key);
    if (HARDWARE.has(device.kind)) {
      this.#put(intf, { ...device, up: false, ip4: [], ip6: [] });
    } else {
      const devices = new Map(this.#devices);
      devices.delete(intf);
      this.#devices = devices;
    }
  }

  #setLink({ intf, kind, lower, up }: Step<'setLink'>): void {
    for (const device of lower) this.#device(device);
    const known = this.#devices.get(intf);
    this.#put(intf, { ip4: known?.ip4 ?? [], ip6: known?.ip6 ?? [], kind, up });
    if (!up) this.#linkDown(intf);
  }

  #applyIpv4Settings({ intf, addresses }: Step<'applyIpv4Settings'>): void {
    const ip4 = addresses.map((address) => checked(address, 4));
    this.#put(intf, { ...this.#device(intf), ip4 });
    this.#connect(intf, 4);
  }

  #flushIP({ intf, family }: Step<'flushIP'>): void {
    const device = this.#device(intf);
    if (family === 4) {
      this.#put(intf, { ...device, ip4: [] });
      this.#connect(intf, 4);
      return;
    }
    this.#put(intf, { ...device, ip6: [] });
    this.#linkDown(intf);
    // Up again: the kernel puts back what follows from the addresses that are left, and nothing else.
    if (device.up) this.#connect(intf, 4);
  }

  #applyIpv6Settings({ intf, enabled, addresses, delegateFrom, client }: Step<'applyIpv6Settings'>): void {
    const device = this.#device(intf);
    const own = addresses.map((address) => checked(address, 6));
    const delegated = delegateFrom === undefined ? [] : this.#delegated(intf, delegateFrom);
    const linkLocal = `fe80::${interfaceId(intf)}/64`;
    const wan = client ? [`2001:db8:ffff::${interfaceId(intf)}/64`] : [];
    const ip6 = enabled && device.up ? [...own, ...delegated, ...wan, linkLocal] : [];
    this.#put(intf, { ...device, ip6: [...new Set(ip6)] });
    this.#connect(intf, 6);
  }

  #changeRoutingTables({ intf, defaultRoute }: Step<'changeRoutingTables'>): void {
    const device = this.#device(intf);
    const kept = this.#routes.filter(
      ({ origin, devices }) => !(origin === 'router' && devices.includes(intf)),
    );
    const own = { origin: 'router', devices: [intf], destination: 'default' };
    const added: Route[] = [];
    if (device.up && defaultRoute) {
      added.push({ family: 4, via: '192.0.2.1', ...own });
      if (device.ip6.length > 0) added.push({ family: 6, via: 'fe80::1', ...own });
    }
    this.#routes = [...kept, ...added];
  }

  /** A device that goes down takes every single-nexthop route on it along (R15). */
  #linkDown(intf: string): void {
    this.#routes = this.#routes.filter(({ devices }) => devices.length > 1 || !devices.includes(intf));
  }

  /** Makes the routes that follow from addresses what the addresses are now. */
  #connect(intf: string, family: 4 | 6): void {
    const device = this.#device(intf);
    const kept = this.#routes.filter(
      (route) => !(route.origin === 'kernel' && route.family === family && route.devices.includes(intf)),
    );
    const addresses = device.up ? (family === 4 ? device.ip4 : device.ip6) : [];
    const destinations = new Set(addresses.map((address) => networkOf(address, family)));
    const connected = [...destinations].map(
      (destination): Route => ({ family, destination, origin: 'kernel', devices: [intf] }),
    );
    this.#routes = [...kept, ...connected];
  }

  #delegated(intf: string, wan: string): string[] {
    const device = this.#devices.get(wan);
    // The prefix is there once the WAN's client has asked for it.
    if (!device?.up || !device.ip6.some((address) => address.startsWith('2001:db8:'))) return [];
    const key = `${wan} ${intf}`;
    let subnet = this.#subnets.get(key);
    if (subnet === undefined) {
      const taken = new Set(this.#subnets.values());
      for (subnet = 1; taken.has(subnet); ) subnet += 1;
      this.#subnets.set(key, subnet);
    }
    return [`2001:db8:${(hash(wan) & 0xffff).toString(16)}:${subnet.toString(16)}::1/64`];
  }

  #device(intf: string): Device {
    const device = this.#devices.get(intf);
    if (!device) throw new KernelRefusal(`Cannot find device "${intf}"`);
    return device;
  }

  #put(intf: string, device: Device): void {
    this.#devices = new Map(this.#devices).set(intf, device);
  }
}

function checked(address: string, family: 4 | 6): string {
  const valid = family === 4 ? ipaddr.IPv4.isValidCIDR(address) : ipaddr.IPv6.isValidCIDR(address);
  if (!valid) throw new KernelRefusal(`Invalid ipv${family} address`);
  return address;
}

function networkOf(address: string, family: 4 | 6): string {
  const [, bits] = ipaddr.parseCIDR(address);
  const network =
    family === 4 ? ipaddr.IPv4.networkAddressFromCIDR(address) : ipaddr.IPv6.networkAddressFromCIDR(address);
  return `${network.toString()}/${bits}`;
}

/** Four hextets that follow from the name, as they would from a hardware address. */
function interfaceId(intf: string): string {
  const id = hash(intf);
  return `5e:${(id >>> 16).toString(16)}:${(id & 0xffff).toString(16)}:1`;
}

/** FNV-1a: the same name gives the same addresses after every start. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return value;
}
