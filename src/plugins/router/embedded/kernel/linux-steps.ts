import { KernelRefusal, type KernelStep } from './driver.ts';
import type { IpBatch } from './linux-batch.ts';
import { cidrWord, defaultRouteLine, nameWord, routeLine } from './linux-lines.ts';
import { type LinuxLink, type LinuxRoute, OWN_PROTOCOL, type Snapshot } from './linux-snapshot.ts';

type Step<Name extends KernelStep['step']> = Extract<KernelStep, { step: Name }>;

/** Kinds of the config that `ip link add` can make, by the kernel's word. */
const MADE: Readonly<Record<string, string>> = {
  vlan: 'vlan',
  bridge: 'bridge',
  bond: 'bond',
  wireguard: 'wireguard',
};
/** Routes that are restored after a flush: our own, and those of the WAN's DHCP client. */
const PUT_BACK: ReadonlySet<string> = new Set([OWN_PROTOCOL, 'dhcp']);

/** Carries out the steps of one apply, in order, on one `ip` process. */
export class LinuxSteps {
  readonly #batch: IpBatch;
  readonly #before: Snapshot;
  /** The devices that exist now; those made in this apply are new. */
  readonly #links: Map<string, LinuxLink>;
  readonly #up = new Map<string, boolean>();
  readonly #flushed = new Set<string>();

  constructor(batch: IpBatch, before: Snapshot) {
    this.#batch = batch;
    this.#before = before;
    this.#links = new Map(before.links);
  }

  /**
   * Carries out the steps of all devices kind by kind, and those of a kind in the given order, in which a device comes after
   * the ones it stands on. So one process switches the IPv6 of many devices, where each would need its own.
   *
   * @param steps checked ones, those of each device in the order of their kinds
   */
  async run(steps: readonly KernelStep[]): Promise<void> {
    for (const step of ofKind(steps, 'removeLink')) await this.#removeLink(step);
    for (const step of ofKind(steps, 'setLink')) this.#setLink(step);
    // A device that is off was perhaps never made.
    const made = steps.filter(({ intf }) => this.#links.has(intf));
    for (const step of ofKind(made, 'applyIpv4Settings')) this.#applyIpv4Settings(step);
    await this.#flush(ofKind(made, 'flushIP'));
    await this.#applyIpv6Settings(ofKind(made, 'applyIpv6Settings'));
    for (const step of ofKind(made, 'changeRoutingTables')) this.#changeRoutingTables(step);
  }

  async #removeLink({ intf }: Step<'removeLink'>): Promise<void> {
    const link = this.#links.get(intf);
    if (link?.kind !== undefined && Object.values(MADE).includes(link.kind)) {
      this.#batch.run(`link del dev ${intf}`);
      this.#links.delete(intf);
      return;
    }
    this.#applyIpv4Settings({ step: 'applyIpv4Settings', intf, addresses: [] });
    await this.#batch.disableIpv6([intf], true);
    this.#batch.run(`link set dev ${intf} down`);
  }

  #setLink({ intf, kind, lower, up, vid }: Step<'setLink'>): void {
    const [below] = lower;
    let link = this.#links.get(intf);
    const isOther = link?.kind === 'vlan' && (link.vid !== vid || link.lower !== below);
    if (kind === 'vlan' && isOther) {
      this.#batch.run(`link del dev ${intf}`);
      link = undefined;
    }
    if (!link) {
      if (!this.#make({ intf, kind, lower, up, ...(vid !== undefined && { vid }) })) return;
      this.#links.set(intf, {
        name: intf,
        up: false,
        addresses: [],
        ...(MADE[kind] && { kind: MADE[kind] }),
      });
    }
    if (kind === 'bridge' || kind === 'bond') this.#setMembers(intf, lower);
    this.#batch.run(`link set dev ${intf} ${up ? 'up' : 'down'}`);
    this.#up.set(intf, up);
  }

  /** @returns false for a device that is off and that cannot be made */
  #make({ intf, kind, lower, up, vid }: Omit<Step<'setLink'>, 'step'>): boolean {
    const made = MADE[kind];
    if (made === undefined || (kind === 'vlan' && (lower[0] === undefined || vid === undefined))) {
      if (!up) return false;
      throw new KernelRefusal(`Cannot find device "${intf}"`);
    }
    if (kind === 'vlan') this.#batch.run(`link add link ${lower[0]} name ${intf} type vlan id ${vid}`);
    else this.#batch.run(`link add name ${intf} type ${made}`);
    return true;
  }

  #setMembers(intf: string, members: readonly string[]): void {
    for (const { name, master } of this.#before.links.values()) {
      if (master === intf && !members.includes(name))
        this.#batch.run(`link set dev ${nameWord(name)} nomaster`);
    }
    for (const member of members) {
      if (this.#before.links.get(member)?.master !== intf)
        this.#batch.run(`link set dev ${member} master ${intf}`);
    }
  }

  #applyIpv4Settings({ intf, addresses }: Step<'applyIpv4Settings'>): void {
    const wanted = new Set(addresses);
    for (const { family, address, dynamic } of this.#links.get(intf)?.addresses ?? []) {
      if (family === 4 && !dynamic && !wanted.has(address))
        this.#batch.run(`address del ${cidrWord(address, 4, intf)} dev ${intf}`);
    }
    for (const address of addresses) this.#batch.run(`address replace ${address} brd + dev ${intf}`);
  }

  async #flush(steps: readonly Step<'flushIP'>[]): Promise<void> {
    for (const { intf, family } of steps)
      if (family === 4) this.#applyIpv4Settings({ step: 'applyIpv4Settings', intf, addresses: [] });
    const interfaces = steps.filter(({ family }) => family === 6).map(({ intf }) => intf);
    for (const intf of interfaces) this.#flushed.add(intf);
    await this.#batch.disableIpv6(interfaces, true);
    for (const intf of interfaces) this.#batch.run(`link set dev ${intf} down`);
    await this.#batch.disableIpv6(interfaces, false);
    for (const intf of interfaces) if (this.#isUp(intf)) this.#batch.run(`link set dev ${intf} up`);
  }

  async #applyIpv6Settings(steps: readonly Step<'applyIpv6Settings'>[]): Promise<void> {
    const isOn = ({ enabled, intf }: Step<'applyIpv6Settings'>) => enabled && this.#isUp(intf);
    const off = steps.filter((step) => !isOn(step)).map(({ intf }) => intf);
    await this.#batch.disableIpv6(off, true);
    for (const { intf, addresses, delegated } of steps.filter(isOn)) {
      const wanted = new Set([...addresses, ...(delegated === undefined ? [] : [delegated])]);
      for (const address of wanted) this.#batch.run(`address replace ${address} dev ${intf}`);
    }
  }

  #changeRoutingTables({ intf, defaultRoute, gateway, gateway6 }: Step<'changeRoutingTables'>): void {
    const own = this.#before.routes.filter(
      ({ devices, protocol }) => devices.length === 1 && devices[0] === intf && PUT_BACK.has(protocol),
    );
    // A flush has removed all of them; without a flush the superfluous ones are removed.
    if (!this.#flushed.has(intf)) {
      for (const route of own) if (isDefault(route) && !defaultRoute) this.#route('del', route);
    }
    if (!this.#isUp(intf)) return;
    const gatewayOf = (family: 4 | 6) => (family === 4 ? gateway : gateway6);
    for (const route of own) {
      if (isDefault(route) && (!defaultRoute || gatewayOf(route.family) !== undefined)) continue;
      if (this.#flushed.has(intf)) this.#route('replace', route);
    }
    if (!defaultRoute) return;
    if (gateway !== undefined) this.#batch.run(defaultRouteLine(intf, gateway, 4));
    if (gateway6 !== undefined) this.#batch.run(defaultRouteLine(intf, gateway6, 6));
  }

  #route(verb: 'replace' | 'del', route: LinuxRoute): void {
    const line = routeLine(verb, route);
    if (line !== undefined) this.#batch.run(line);
  }

  #isUp(intf: string): boolean {
    return this.#up.get(intf) ?? this.#links.get(intf)?.up ?? false;
  }
}

function ofKind<Name extends KernelStep['step']>(steps: readonly KernelStep[], name: Name): Step<Name>[] {
  return steps.filter((one): one is Step<Name> => one.step === name);
}

function isDefault({ destination }: LinuxRoute): boolean {
  return destination === 'default';
}
