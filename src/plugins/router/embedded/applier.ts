import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { ErrorCode } from '../../../core/kernel/errors/holdfast-error.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type { WanParams } from '../../../machines/router/wan.ts';
import { generateFiles, legsOfFiles, rewrittenLegs } from '../config/generated-files.ts';
import { delegatingLegs, interfacesOf } from '../config/network-config.ts';
import { planInterfaces, planReapply, type ReapplyPlan } from '../config/reapply.ts';
import type { GeneratedFolder } from './generated-folder.ts';
import { type InterfaceState, type KernelDriver, KernelRefusal, type Undo } from './kernel/driver.ts';
import { kernelSteps, type Wan } from './kernel/steps.ts';

export interface ApplierTargets {
  readonly kernel: KernelDriver;
  /** Where the files of the DHCP and DNS daemons go; none are made without it. */
  readonly files?: GeneratedFolder | undefined;
}

/** A change of the box that can still be taken back. */
export interface AppliedChange {
  readonly plan: ReapplyPlan;
  /** Paths of generated files that changed. */
  readonly files: readonly string[];
  undo(): Promise<void>;
  /** From now on the box stands at that config. */
  keep(fingerprint: string): Promise<void>;
}

/** Kernel and generated files, which change together. It knows at which config they stand, and is no judge of it. */
export class ConfigApplier {
  readonly #kernel: KernelDriver;
  readonly #files: GeneratedFolder | undefined;
  /** Fingerprint of the config that the kernel stands at; while it is not the store's, an apply is a whole one. */
  #standing: string | undefined;
  #fault: string | undefined;
  /** By interface; what the config does not say of them. */
  readonly #wans = new Map<string, Wan>();

  constructor({ kernel, files }: ApplierTargets) {
    this.#kernel = kernel;
    this.#files = files;
  }

  /** Why the box could not be brought to the persisted config at start; undefined once it stands at one. */
  fault(): string | undefined {
    return this.#standing === undefined ? this.#fault : undefined;
  }

  isAt(fingerprint: string): boolean {
    return this.#standing === fingerprint;
  }

  /** Nobody knows any more where it stands: the next change is a whole one. */
  forget(): void {
    this.#standing = undefined;
  }

  /**
   * Brings all of it, of which nothing is known, to a config.
   *
   * @returns the legs whose advertisement was another than it is now
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

  /** Kernel first, then the daemons' files; whatever fails, both stay as they were (R7). */
  async change(plan: ReapplyPlan, config: NetworkConfig, signal: AbortSignal): Promise<AppliedChange> {
    const files = await this.#files?.stage(generateFiles(config));
    let undoKernel: Undo | undefined;
    const undo = async (): Promise<void> => {
      const standing = this.#standing;
      this.#standing = undefined; // unless all of it is taken back
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

  /** What was last known of the WANs. */
  recall(wans: ReadonlyMap<string, Wan>): void {
    for (const [intf, wan] of wans) this.#wans.set(intf, wan);
  }

  /**
   * A WAN's new prefix, or that it went down or came up. Idempotent.
   *
   * @returns the legs that got another address by it
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

  /** Every IPv6 address that the kernel has now, by interface; none of an interface it does not know. */
  addresses(config: NetworkConfig): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#kernel.addresses(interfacesOf(config).map(({ name }) => name));
  }

  /** Names of the files that the DHCP service reads, whoever put them there. */
  async dhcpFiles(): Promise<readonly string[]> {
    return (await this.#files?.dhcpFiles()) ?? [];
  }
}

/** How applies and changes of a WAN end, as the events that their machines wait for. */

/** What an apply reached, for those who listen to the channels. */
interface Reapplied {
  readonly reapplied: string[];
  /** Legs whose file for the DHCP service was rewritten. */
  readonly rewritten?: string[];
  readonly apc?: true;
}

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
  const apc = [...plan.removed, ...plan.applied].some(({ plugin }) => plugin === 'apc');
  return {
    reapplied: [...plan.interfaces],
    ...(rewritten.length > 0 && { rewritten }),
    ...(apc && { apc: true }),
  };
}

/** What the kernel or the daemons' files could not take, in words for the client. @throws anything else, as it is */
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
