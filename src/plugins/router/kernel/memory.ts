import { setImmediate } from 'node:timers/promises';
import {
  type InterfaceState,
  type KernelDriver,
  KernelRefusal,
  type KernelStep,
  type Route,
  type Undo,
} from './driver.ts';
import { type Device, type Devices, runStep } from './memory-steps.ts';

/** A large config must not hold up everybody else: after so many steps others have a turn. */
const STEPS_A_TURN = 200;

/**
 * A faithful model of what a reapply does to links, addresses and routes, for a box whose network must not be
 * touched. An apply works on a draft that takes the model's place when its last step is done.
 */
export class MemoryKernel implements KernelDriver {
  #devices: Devices = new Map();
  /** Multipath routes that came from outside; an apply leaves them alone. */
  readonly #multipath: Route[] = [];

  async apply(steps: readonly KernelStep[], signal: AbortSignal): Promise<Undo> {
    const before = this.#devices;
    const draft = new Map(before);
    for (const [index, step] of steps.entries()) {
      if (index % STEPS_A_TURN === STEPS_A_TURN - 1) await setImmediate();
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
    const { up, ip4, ip6, routes } = device;
    const shared = this.#multipath.filter(({ devices }) => devices.includes(intf));
    return { up, ip4, ip6, routes: [...routes, ...shared].map(({ devices: _, ...route }) => route) };
  }

  async addresses(interfaces: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const known = interfaces.flatMap((intf): [string, readonly string[]][] => {
      const device = this.#devices.get(intf);
      return device ? [[intf, device.ip6]] : [];
    });
    return new Map(known);
  }

  /** Adds a route out of band, as `ip route add` would. @throws KernelRefusal a device is not known */
  addRoute(route: Route): void {
    const [first] = route.devices.map((name) => ({ name, device: this.#known(name) }));
    if (route.devices.length > 1) this.#multipath.push(route);
    else if (first) {
      const { name, device } = first;
      this.#devices = new Map(this.#devices).set(name, { ...device, routes: [...device.routes, route] });
    }
  }

  #known(intf: string): Device {
    const device = this.#devices.get(intf);
    if (!device) throw new KernelRefusal(`Cannot find device "${intf}"`);
    return device;
  }
}
