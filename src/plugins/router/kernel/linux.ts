import { isConfigurable } from '../generated/names.ts';
import type { InterfaceState, KernelDriver, KernelStep, Undo } from './driver.ts';
import { IpBatch, type IpOptions } from './linux-batch.ts';
import { checkStep } from './linux-lines.ts';
import { restore } from './linux-restore.ts';
import { readSnapshot, type Snapshot, stateOf } from './linux-snapshot.ts';
import { LinuxSteps } from './linux-steps.ts';

/** Nobody waits longer for `ip` to say what stands. */
const READ_DEADLINE_MS = 10_000;

/**
 * The network of this machine, or of a namespace of it, through iproute2: one process an apply, which reads what stands,
 * changes it step by step, and ends. What a failed step leaves is taken back from what was read (R7). Keys of tunnels are
 * not its business: it holds no secret.
 */
export class LinuxKernel implements KernelDriver {
  readonly #options: IpOptions;

  /** @param options which namespace; this process's own without one */
  constructor(options: IpOptions = {}) {
    this.#options = options;
  }

  async apply(wanted: readonly KernelStep[], signal: AbortSignal): Promise<Undo> {
    // A device with such a name was never made here: there is nothing to remove, and nothing to refuse.
    const steps = wanted.filter(({ step, intf }) => step !== 'removeLink' || isConfigurable(intf));
    for (const step of steps) checkStep(step);
    if (steps.length === 0) return async () => {};
    const touched = new Set(steps.flatMap((step) => [step.intf, ...('lower' in step ? step.lower : [])]));
    const batch = new IpBatch(this.#options, signal);
    let before: Snapshot | undefined;
    try {
      before = await readSnapshot(batch);
      const work = new LinuxSteps(batch, before);
      for (const step of steps) await work.run(step);
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
    return stateOf(await this.#read(), intf);
  }

  async addresses(interfaces: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const now = await this.#read();
    const known = interfaces.flatMap((intf): [string, readonly string[]][] => {
      const state = stateOf(now, intf);
      return state ? [[intf, state.ip6]] : [];
    });
    return new Map(known);
  }

  async #read(): Promise<Snapshot> {
    const batch = new IpBatch(this.#options, AbortSignal.timeout(READ_DEADLINE_MS));
    try {
      return await readSnapshot(batch);
    } finally {
      await batch.kill();
    }
  }
}
