import { readFile } from 'node:fs/promises';
import { isConfigurable } from '../../config/validate.ts';
import type { InterfaceState, KernelDriver, KernelStep, Undo } from './driver.ts';
import { IpBatch, type IpOptions } from './linux-batch.ts';
import { checkStep, cidrWord, nameWord, routeLine } from './linux-lines.ts';
import { type LinuxLink, readSnapshot, type Snapshot, stateOf, statesOf } from './linux-snapshot.ts';
import { LinuxSteps } from './linux-steps.ts';

/** Timeout of reading the state with `ip`. */
const READ_DEADLINE_MS = 10_000;

/**
 * The network of this machine, or of a namespace of it, through iproute2: one process for each apply, which reads the
 * present state, changes it step by step, and ends. When a step fails, the state that was read is restored (R7). The
 * driver gets no secrets, so it does not set the keys of tunnels.
 */
export class LinuxKernel implements KernelDriver {
  readonly #options: IpOptions;

  /** @param options which namespace; this process's own without one */
  constructor(options: IpOptions = {}) {
    this.#options = options;
  }

  async apply(wanted: readonly KernelStep[], signal: AbortSignal): Promise<Undo> {
    // A device with such a name was never created here, so there is nothing to remove and no reason to refuse the step.
    const steps = wanted.filter(({ step, intf }) => step !== 'removeLink' || isConfigurable(intf));
    for (const step of steps) checkStep(step);
    if (steps.length === 0) return async () => {};
    const touched = new Set(steps.flatMap((step) => [step.intf, ...('lower' in step ? step.lower : [])]));
    const batch = new IpBatch(this.#options, signal);
    let before: Snapshot | undefined;
    try {
      before = await readSnapshot(batch);
      const work = new LinuxSteps(batch, before);
      await work.run(steps);
      await batch.sync();
      await batch.end();
    } catch (error) {
      await batch.kill();
      if (before) await this.#restore(before, touched);
      throw error;
    }
    const stood = before;
    return () => this.#restore(stood, touched);
  }

  async #restore(before: Snapshot, touched: ReadonlySet<string>): Promise<void> {
    try {
      await restore(this.#options, before, touched);
    } catch (cause) {
      throw new Error('the kernel could not be brought back to what it was', { cause });
    }
  }

  async state(intf: string): Promise<InterfaceState | undefined> {
    return (await this.states()).get(intf);
  }

  async states(): Promise<ReadonlyMap<string, InterfaceState>> {
    const states = statesOf(await this.snapshot(true));
    if (this.#options.namespace !== undefined) return states; // its /sys is not seen from here
    return new Map(
      await Promise.all(
        [...states].map(async ([intf, state]) => [intf, await withSpeed(intf, state)] as const),
      ),
    );
  }

  async hardware(): Promise<readonly string[]> {
    const { links } = await this.snapshot();
    return [...links.values()].flatMap(({ name, kind }) =>
      kind === undefined && name !== 'lo' ? [name] : [],
    );
  }

  async addresses(interfaces: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const now = await this.snapshot();
    const addresses = interfaces.flatMap((intf): [string, readonly string[]][] => {
      const state = stateOf(now, intf);
      return state ? [[intf, state.ip6]] : [];
    });
    return new Map(addresses);
  }

  /** Links, addresses and routes as they are now, with one process. */
  async snapshot(statistics = false): Promise<Snapshot> {
    const batch = new IpBatch({ ...this.#options, statistics }, AbortSignal.timeout(READ_DEADLINE_MS));
    try {
      return await readSnapshot(batch);
    } finally {
      await batch.kill();
    }
  }
}

/** `ip` does not print speed and duplex; the kernel refuses both for a device that is off or has none. */
async function withSpeed(intf: string, state: InterfaceState): Promise<InterfaceState> {
  const read = (file: string) =>
    readFile(`/sys/class/net/${intf}/${file}`, 'utf8').then(
      (text) => text.trim(),
      () => null,
    );
  const [speed, duplex] = await Promise.all([read('speed'), read('duplex')]);
  return { ...state, link: { ...state.link, speed, duplex } };
}

/** Long enough for any network; a kernel that hangs must not delay the answer of an apply for ever. */
const DEADLINE_MS = 60_000;

/**
 * Brings devices back to what was read before: links, addresses, and every route through one device, also those from outside.
 * It goes as far as it can: one change that cannot be undone must not keep the others from being undone.
 */
export async function restore(
  options: IpOptions,
  before: Snapshot,
  touched: ReadonlySet<string>,
): Promise<void> {
  const batch = new IpBatch({ ...options, force: true }, AbortSignal.timeout(DEADLINE_MS));
  const names = [...touched].filter(isConfigurable);
  const now = await readSnapshot(batch);
  for (const name of names)
    if (!before.links.has(name) && now.links.has(name)) batch.run(`link del dev ${name}`);
  const links = names.flatMap((name) => before.links.get(name) ?? []).sort(lowerFirst);
  for (const link of links) {
    if (!now.links.has(link.name) || isOther(link, now.links.get(link.name))) make(batch, link, now);
    const master = link.master;
    batch.run(`link set dev ${link.name} ${master === undefined ? 'nomaster' : `master ${master}`}`);
    for (const member of before.links.values())
      if (member.master === link.name) batch.run(`link set dev ${nameWord(member.name)} master ${link.name}`);
    await restoreAddresses(batch, link, now);
  }
  for (const route of before.routes) {
    const [intf] = route.devices;
    if (intf === undefined || !touched.has(intf) || route.protocol === 'kernel') continue;
    const line = routeLine('replace', route);
    if (line !== undefined) batch.run(line);
  }
  await batch.end();
}

async function restoreAddresses(
  batch: IpBatch,
  { name, up, addresses }: LinuxLink,
  now: Snapshot,
): Promise<void> {
  // This also removes every route that the failed apply added.
  await batch.disableIpv6([name], true);
  batch.run(`link set dev ${name} down`);
  const had = new Set(addresses.map(({ address }) => address));
  for (const { family, address } of now.links.get(name)?.addresses ?? []) {
    if (family === 4 && !had.has(address)) batch.run(`address del ${cidrWord(address, 4, name)} dev ${name}`);
  }
  const hasIpv6 = addresses.some(({ family }) => family === 6);
  if (hasIpv6 || !up) await batch.disableIpv6([name], false);
  if (up) batch.run(`link set dev ${name} up`);
  for (const { family, address, linkLocal, dynamic } of addresses) {
    if (linkLocal || (dynamic && family === 6)) continue; // the kernel and the next advertisement make these
    const broadcast = family === 4 ? 'brd + ' : '';
    batch.run(`address replace ${cidrWord(address, family, name)} ${broadcast}dev ${name}`);
  }
}

function make(batch: IpBatch, { name, kind, lower, vid }: LinuxLink, now: Snapshot): void {
  if (now.links.has(name)) batch.run(`link del dev ${name}`);
  if (kind === 'vlan' && lower !== undefined && vid !== undefined)
    batch.run(`link add link ${lower} name ${name} type vlan id ${vid}`);
  else if (kind === 'bridge' || kind === 'bond' || kind === 'wireguard')
    batch.run(`link add name ${name} type ${kind}`);
}

function isOther(before: LinuxLink, now: LinuxLink | undefined): boolean {
  return before.kind === 'vlan' && (before.vid !== now?.vid || before.lower !== now?.lower);
}

/** Sorts VLANs after the devices below them. */
function lowerFirst(a: LinuxLink, b: LinuxLink): number {
  return Number(a.lower !== undefined) - Number(b.lower !== undefined);
}
