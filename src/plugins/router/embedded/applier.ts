import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { ErrorCode } from '../../../core/kernel/errors/holdfast-error.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { jsonEqual } from '../../../core/kernel/json.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type { WanParams } from '../../../machines/router/wan.ts';
import { generateFiles, legsOfFiles, rewrittenLegs } from '../config/generated-files.ts';
import { delegatingLegs, interfacesOf } from '../config/network-config.ts';
import { planInterfaces, planReapply, type ReapplyPlan } from '../config/reapply.ts';
import type { GeneratedFolder } from './generated-folder.ts';
import type { Observed } from './interface-view.ts';
import { type InterfaceState, type KernelDriver, KernelRefusal, type Undo } from './kernel/driver.ts';
import { type Snapshot, statesOf } from './kernel/linux-snapshot.ts';
import { kernelSteps, type Wan } from './kernel/steps.ts';

export interface ApplierTargets {
  readonly kernel: KernelDriver;
  /** The folder for the files of the DHCP and DNS daemons; without it no files are written. */
  readonly files?: GeneratedFolder | undefined;
}

/** A change of kernel and files that can still be undone. */
export interface AppliedChange {
  readonly plan: ReapplyPlan;
  /** Paths of generated files that changed. */
  readonly files: readonly string[];
  undo(): Promise<void>;
  /** Keeps the change; kernel and files have the config with that fingerprint. */
  keep(fingerprint: string): Promise<void>;
}

/** Applies configs to the kernel and the generated files, both or neither, and remembers which config they have. */
export class ConfigApplier {
  readonly #kernel: KernelDriver;
  readonly #files: GeneratedFolder | undefined;
  /** Fingerprint of the applied config. While it differs from that of the stored config, the next apply is complete. */
  #standing: string | undefined;
  #fault: string | undefined;
  /** State of the WANs that is not part of the config, by interface. */
  readonly #wans = new Map<string, Wan>();

  constructor({ kernel, files }: ApplierTargets) {
    this.#kernel = kernel;
    this.#files = files;
  }

  /** Why the persisted config could not be applied at the start; undefined after an apply has succeeded. */
  fault(): string | undefined {
    return this.#standing === undefined ? this.#fault : undefined;
  }

  isAt(fingerprint: string): boolean {
    return this.#standing === fingerprint;
  }

  /** It is no longer known what is applied, so the next apply is complete. */
  forget(): void {
    this.#standing = undefined;
  }

  /**
   * Applies a config to a kernel and files whose state is not known.
   *
   * @returns the legs whose advertisement was different before
   */
  async setUp(config: NetworkConfig, fingerprint: string, signal: AbortSignal): Promise<string[]> {
    if (this.isAt(fingerprint)) return [];
    try {
      const change = await this.change(planReapply(undefined, config), config, signal);
      await change.keep(fingerprint);
      return legsOfFiles(change.files);
    } catch (error) {
      this.#standing = undefined;
      this.#fault = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  /** Kernel first, then the daemons' files. If either fails, both stay as they were (R7). */
  async change(plan: ReapplyPlan, config: NetworkConfig, signal: AbortSignal): Promise<AppliedChange> {
    const files = await this.#files?.stage(generateFiles(config));
    let undoKernel: Undo | undefined;
    const undo = async (): Promise<void> => {
      const standing = this.#standing;
      this.#standing = undefined; // until all of it is undone
      await files?.undo();
      await undoKernel?.();
      this.#standing = standing;
    };
    try {
      undoKernel = await this.#kernel.apply(kernelSteps(plan, config, this.#wans), signal);
      await files?.commit();
    } catch (error) {
      if (!(error instanceof KernelRefusal) && !isCoded(error)) this.#standing = undefined;
      await undo();
      throw error;
    }
    const keep = async (fingerprint: string): Promise<void> => {
      await files?.keep();
      this.#standing = fingerprint;
    };
    return { plan, files: files?.changed ?? [], undo, keep };
  }

  /** Sets the last known state of the WANs. */
  recall(wans: ReadonlyMap<string, Wan>): void {
    for (const [intf, wan] of wans) this.#wans.set(intf, wan);
  }

  /**
   * Applies a WAN's new prefix, or that it went down or came up. Idempotent.
   *
   * @returns the legs whose address changed with it
   * @throws KernelRefusal nothing is changed then
   */
  async changeWan(
    config: NetworkConfig,
    { wan, up, prefix }: WanParams,
    signal: AbortSignal,
  ): Promise<string[]> {
    const before = this.#wans.get(wan);
    this.#wans.set(wan, { up, prefix });
    const moved = prefix !== undefined && prefix !== before?.prefix;
    const legs = moved ? delegatingLegs(config, wan) : [];
    const touched = (before?.up ?? true) === up ? legs : [wan, ...legs];
    try {
      const plan = planInterfaces(config, new Set(touched));
      await this.#kernel.apply(kernelSteps(plan, config, this.#wans), signal);
    } catch (error) {
      if (before) this.#wans.set(wan, before);
      else this.#wans.delete(wan);
      throw error;
    }
    return legs;
  }

  state(intf: string): Promise<InterfaceState | undefined> {
    return this.#kernel.state(intf);
  }

  /** Every device of the kernel, and what is known of the WANs. @param known the kernel's state, so that it is not asked */
  async observe(known?: Snapshot): Promise<Observed> {
    return { states: known ? statesOf(known) : await this.#kernel.states(), wans: this.#wans };
  }

  /** Names of the devices that are hardware. */
  hardware(): Promise<readonly string[]> {
    return this.#kernel.hardware();
  }

  /** Every IPv6 address that the kernel has now, by interface; none of an interface it does not know. */
  addresses(config: NetworkConfig): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#kernel.addresses(interfacesOf(config).map(({ name }) => name));
  }

  /** Names of the files that the DHCP service reads, including files that an operator placed there. */
  async dhcpFiles(): Promise<readonly string[]> {
    return (await this.#files?.dhcpFiles()) ?? [];
  }
}

/** What an apply changed, for subscribers of the channels. */
interface Reapplied {
  readonly reapplied: string[];
  /** Legs whose file for the DHCP service was rewritten. */
  readonly rewritten?: string[];
  readonly apc?: true;
  /** Nothing but the access-point controller's part differs. */
  readonly apcOnly?: true;
}

/** The outcomes of applies and of changes of a WAN, as the events that their machines wait for. */
export function applied(
  ncid: string,
  fingerprint: string,
  plan: ReapplyPlan,
  before: NetworkConfig,
  after: NetworkConfig,
): LogEvent {
  return { type: 'APPLIED', ncid, fingerprint, ...reappliedBy(plan, before, after) };
}

function reappliedBy(plan: ReapplyPlan, before: NetworkConfig, after: NetworkConfig): Reapplied {
  const rewritten = rewrittenLegs(plan, before, after);
  const touched = [...plan.removed, ...plan.applied];
  const apc = touched.some(({ plugin }) => plugin === 'apc');
  const apcOnly = apc && touched.every(({ plugin }) => plugin === 'apc') && sameBesideApc(before, after);
  return {
    reapplied: [...plan.interfaces],
    ...(rewritten.length > 0 && { rewritten }),
    ...(apc && { apc: true }),
    ...(apcOnly && { apcOnly }),
  };
}

function sameBesideApc(before: NetworkConfig, after: NetworkConfig): boolean {
  const rest = ({ apc: _, ncid: __, ...others }: NetworkConfig) => others;
  return jsonEqual(rest(before), rest(after));
}

/** An apply that the kernel or the daemons' files refused, in words for the client. @throws any other error */
export function refusal(error: unknown): LogEvent {
  if (error instanceof KernelRefusal) return failed(error.message);
  if (isCoded(error, 'HF_ROUTER_GENERATE') || isCoded(error, 'HF_ROUTER_KERNEL'))
    return failed(error.what, error.code);
  throw error;
}

/** Nothing was written. */
export function unavailable({ what, code, status }: HoldfastError): LogEvent {
  return { type: 'APPLY_FAILED', errors: [what], code, status };
}

export function failed(reason: string, code: ErrorCode = 'HF_ROUTER_APPLY_FAILED'): LogEvent {
  return { type: 'APPLY_FAILED', errors: [reason], code, status: 500 };
}

export function refusedWan(reason: string): LogEvent {
  return { type: 'WAN_REFUSED', reason };
}
