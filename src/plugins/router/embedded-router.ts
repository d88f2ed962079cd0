import type { EffectContext, EffectOutcome } from '../../core/actors/index.ts';
import type { ConfigStore, HistoryEntry, StoredConfig } from '../../core/adapters/config-store.ts';
import type { NetworkConfig } from '../../core/adapters/router.ts';
import { type ErrorCode, HoldfastError, isCoded } from '../../core/errors/index.ts';
import type { Blobs, LogEvent } from '../../core/log/index.ts';
import type { Vault } from '../../core/secrets/index.ts';
import type { ApplyParams } from '../../machines/config-transaction/shapes.ts';
import type { WanParams } from '../../machines/wan.ts';
import { changedPaths } from './changed-paths.ts';
import type { GeneratedFolder } from './generated/folder.ts';
import { generateFiles, legsOfFiles, rewrittenLegs } from './generated/generate.ts';
import {
  type InterfaceState,
  type KernelDriver,
  KernelRefusal,
  type KernelStep,
  type Undo,
} from './kernel/driver.ts';
import { kernelSteps } from './kernel/steps.ts';
import type { Wan } from './kernel/wans.ts';
import { delegatingLegs, interfaceOf, interfacesOf } from './network-config.ts';
import { planInterfaces, planReapply, type ReapplyPlan } from './reapply.ts';
import type { SealedConfigs } from './sealed-configs.ts';
import { Section } from './section.ts';

export interface EmbeddedRouterParts {
  readonly store: ConfigStore;
  readonly kernel: KernelDriver;
  /** Where the files of the DHCP and DNS daemons go; none are made without it. */
  readonly files?: GeneratedFolder | undefined;
  readonly configs: SealedConfigs;
  readonly vault: Vault;
}

/** What an apply reached, for those who listen to the channels. */
interface Reapplied {
  readonly reapplied: string[];
  /** Legs whose file for the DHCP service was rewritten. */
  readonly rewritten?: string[];
  readonly apc?: true;
}

type LoadedEvent = { type: 'LOADED'; ncid: string; fingerprint: string } & Partial<Reapplied>;

const FOLLOW_DEADLINE_MS = 60_000;

/** A change of the box that can still be taken back. */
interface BoxChange {
  /** Paths of generated files that changed. */
  readonly files: readonly string[];
  undo(): Promise<void>;
  keep(): Promise<void>;
}

/**
 * The box: its kernel, its generated files and its config store, which change together and in one critical section. It carries out what
 * the machine `config-transaction` decided and decides nothing itself.
 *
 * What a crash leaves, and what heals it (R9): the record that asks for an apply is durable before the apply begins,
 * and the apply is retried with the same effect id, from which its ncid follows.
 *
 * | killed                                | store | after the start                                          |
 * | ------------------------------------- | ----- | -------------------------------------------------------- |
 * | before the record is durable          | old   | nobody was answered, nothing happened                    |
 * | before or while the kernel is changed | old   | the kernel is set up from the store; the retry applies   |
 * | between kernel and save               | old   | the same                                                 |
 * | after the save, before its outcome    | new   | the retry finds its own ncid and reports what was saved  |
 * | after the outcome, before publishing  | new   | publishing is an effect of its own and is retried        |
 * | after publishing, before the answer   | new   | the exchange is gone with the process; the answer is too |
 *
 * At the start the store's ncid is told to the machine before effects are retried. While an apply is open the machine
 * takes no notice, for the retry will say what stands; otherwise a difference means that somebody wrote behind the
 * API's back.
 */
export class EmbeddedRouter {
  readonly #parts: EmbeddedRouterParts;
  readonly #section = new Section();
  /** Fingerprint of the config that the kernel stands at; while it is not the store's, an apply is a whole one. */
  #standing: string | undefined;
  /** The config that the box stands at when a save ended without an answer. */
  #left: NetworkConfig | undefined;
  #fault: string | undefined;
  /** By interface; what the config does not say of them. */
  readonly #wans = new Map<string, Wan>();

  constructor(parts: EmbeddedRouterParts) {
    this.#parts = parts;
  }

  /** Why the box does not stand at the persisted config; undefined while it does. */
  fault(): string | undefined {
    return this.#standing === undefined ? this.#fault : undefined;
  }

  /** What is persisted now, and so what is served (R2). */
  async active(): Promise<StoredConfig> {
    const active = await this.#parts.store.active();
    if (!active) throw new HoldfastError('HF_ROUTER_STORE', { file: 'of the router', reason: 'it is empty' });
    return active;
  }

  history(limit: number): Promise<readonly HistoryEntry[]> {
    return this.#parts.store.history(limit);
  }

  /** @throws HF_ROUTER_INTERFACE_UNKNOWN the active config has no such interface */
  async interface(intf: string): Promise<{ config: unknown; state: InterfaceState | undefined }> {
    const entry = interfaceOf(await this.#config(), intf);
    if (!entry) throw new HoldfastError('HF_ROUTER_INTERFACE_UNKNOWN', { intf });
    return { config: entry.config, state: await this.#parts.kernel.state(intf) };
  }

  /**
   * Brings kernel and files, of which nothing is known after a start, to the persisted config.
   *
   * @param wans what was last known of the WANs
   * @returns the legs whose advertisement a kill, or somebody's editor, had left other than it is now
   */
  setUp(signal: AbortSignal, wans: ReadonlyMap<string, Wan> = new Map()): Promise<string[]> {
    return this.#section.run(async () => {
      for (const [intf, wan] of wans) this.#wans.set(intf, wan);
      const config = await this.#config();
      const fingerprint = this.#parts.configs.fingerprint(config);
      if (fingerprint === this.#standing) return [];
      try {
        const change = await this.#change(planReapply(undefined, config), config, signal);
        await change.keep();
        this.#standing = fingerprint;
        return legsOfFiles(change.files);
      } catch (error) {
        this.#standing = undefined;
        this.#fault = error instanceof Error ? error.message : String(error);
        throw error;
      }
    });
  }

  /** The config, and every IPv6 address that the kernel has now, by interface; none of an interface it does not know. */
  async addresses(): Promise<{ config: NetworkConfig; held: ReadonlyMap<string, readonly string[]> }> {
    const config = await this.#config();
    const names = interfacesOf(config).map(({ name }) => name);
    return { config, held: await this.#parts.kernel.addresses(names) };
  }

  /** Names of the files that the DHCP service reads, whoever put them there. */
  async dhcpFiles(): Promise<readonly string[]> {
    return (await this.#parts.files?.dhcpFiles()) ?? [];
  }

  /** Effect `router.change_wan`: a WAN's new prefix, or that it went down or came up (R17, R39). Idempotent. */
  changeWan({ wan, up, prefix }: WanParams, { signal }: EffectContext): Promise<LogEvent> {
    return this.#section.run(async () => {
      const { ncid } = await this.active();
      const config = await this.#config();
      if (!interfaceOf(config, wan)) return refusedWan(`the config has no interface ${wan}`);
      const before = this.#wans.get(wan);
      this.#wans.set(wan, { up, prefix });
      const moved = prefix !== undefined && prefix !== before?.prefix;
      const legs = moved ? delegatingLegs(config, wan) : [];
      const touched = (before?.up ?? true) === up ? legs : [wan, ...legs];
      try {
        const plan = planInterfaces(config, new Set(touched));
        await this.#parts.kernel.apply(kernelSteps(plan, config, this.#wans), signal);
      } catch (error) {
        if (before) this.#wans.set(wan, before);
        else this.#wans.delete(wan);
        if (error instanceof KernelRefusal) return refusedWan(error.message);
        throw error;
      }
      return { type: 'WAN_APPLIED', ncid, reapplied: legs };
    });
  }

  /** Reads the store, after whatever apply may still be running, and hands its body to the log's keeping. */
  load(): Promise<{ event: LoadedEvent; blobs: Blobs }> {
    return this.#section.run(async () => {
      const active = await this.active();
      const config = JSON.parse(active.body) as NetworkConfig;
      const followed = await this.#follow(config);
      const { fingerprint, blobs } = this.#parts.configs.seal(config);
      return { event: { type: 'LOADED', ncid: active.ncid, fingerprint, ...followed }, blobs };
    });
  }

  /** Effect `router.apply`. Idempotent by the effect's id. */
  apply(params: ApplyParams, context: EffectContext): Promise<EffectOutcome> {
    return this.#section.run(() => this.#apply(params, context));
  }

  async #apply(params: ApplyParams, { id, at, signal, recovered }: EffectContext): Promise<EffectOutcome> {
    let active: StoredConfig;
    try {
      active = await this.active();
    } catch (error) {
      // A first run has changed nothing yet; what became of an earlier one is for the store to say.
      if (!recovered && isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return unavailable(error);
      throw error;
    }
    const before = JSON.parse(active.body) as NetworkConfig;
    const ncid = this.#newNcid(id, at);
    if (params.op !== 'reapply' && active.ncid === ncid) return this.#savedBefore(params, before);
    // A hand that edits the store leaves the ncid as it was.
    const untouched = this.#parts.configs.fingerprint(before) === params.before;
    if (active.ncid !== params.expected || !untouched) return this.#overtaken(active);
    if (params.op === 'reapply') return this.#reapply(params, before, signal);

    const posted = this.#parts.configs.open(params.fingerprint);
    if (!posted) return failed('the config to apply is no longer stored');
    const next: NetworkConfig = { ...posted, ncid };
    const plan = planReapply(this.#standing === params.before ? before : undefined, next);
    let change: BoxChange;
    try {
      change = await this.#change(plan, next, signal);
    } catch (error) {
      return refusal(error);
    }
    try {
      signal.throwIfAborted();
      const { expected, op, who } = params;
      const body = JSON.stringify(next);
      const saved = await this.#save({
        ncid,
        body,
        expected,
        at,
        op,
        who,
        changed: changedPaths(before, next),
      });
      if (!saved) {
        await change.undo();
        return this.#overtaken(await this.active());
      }
    } catch (error) {
      await change.undo();
      // The save may come about yet: whoever reads the store next brings the box to what it holds.
      this.#left = before;
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return unavailable(error);
      throw error;
    }
    await change.keep();
    this.#standing = params.fingerprint;
    return applied(ncid, params.fingerprint, plan, before, next);
  }

  /** A save that ended without an answer came about after all: the box goes where it had gone before it was taken back. */
  async #follow(config: NetworkConfig): Promise<Reapplied | undefined> {
    const left = this.#left;
    this.#left = undefined;
    if (left === undefined || left.ncid === config.ncid) return undefined;
    try {
      const stands = this.#standing === this.#parts.configs.fingerprint(left);
      const plan = planReapply(stands ? left : undefined, config);
      const change = await this.#change(plan, config, AbortSignal.timeout(FOLLOW_DEADLINE_MS));
      await change.keep();
      this.#standing = this.#parts.configs.fingerprint(config);
      return reappliedBy(plan, left, config);
    } catch {
      this.#standing = undefined; // the next apply is a whole one
      return undefined;
    }
  }

  /** Kernel first, then the daemons' files (`router-config.md` §Interface reapply); whatever fails, both stay as they were (R7). */
  async #change(plan: ReapplyPlan, config: NetworkConfig, signal: AbortSignal): Promise<BoxChange> {
    const files = await this.#parts.files?.stage(generateFiles(config));
    let undoKernel: Undo | undefined;
    const undo = async (): Promise<void> => {
      const standing = this.#standing;
      this.#standing = undefined; // unless all of it is taken back
      await files?.undo();
      await undoKernel?.();
      this.#standing = standing;
    };
    try {
      const steps: KernelStep[] = kernelSteps(plan, config, this.#wans);
      undoKernel = await this.#parts.kernel.apply(steps, signal);
      await files?.commit();
    } catch (error) {
      if (!(error instanceof KernelRefusal) && !isCoded(error)) this.#standing = undefined;
      await undo();
      throw error;
    }
    return { files: files?.changed ?? [], undo, keep: async () => files?.keep() };
  }

  /** A save without an answer may have come about: the store knows. */
  async #save(write: Parameters<ConfigStore['save']>[0]): Promise<boolean> {
    try {
      return await this.#parts.store.save(write);
    } catch (error) {
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) throw error;
      const active = await this.active().catch(() => undefined);
      if (active?.ncid === write.ncid) return true;
      throw error;
    }
  }

  /** `apply_current_config`: every instance again, nothing saved (R11). */
  async #reapply(
    { expected, fingerprint }: ApplyParams,
    config: NetworkConfig,
    signal: AbortSignal,
  ): Promise<EffectOutcome> {
    const plan = planReapply(config, config, true);
    try {
      const change = await this.#change(plan, config, signal);
      await change.keep();
    } catch (error) {
      return refusal(error);
    }
    this.#standing = fingerprint;
    return applied(expected, fingerprint, plan, config, config);
  }

  /** An earlier run of this effect saved and was killed before it could say so. */
  #savedBefore(params: ApplyParams, saved: NetworkConfig): LogEvent {
    const { fingerprint } = params;
    const before = this.#parts.configs.open(params.before);
    return applied(String(saved.ncid), fingerprint, planReapply(before, saved), before ?? {}, saved);
  }

  /** Somebody else wrote the store: it counts, and the kernel follows with the next apply. */
  #overtaken(active: StoredConfig): EffectOutcome {
    const { fingerprint, blobs } = this.#parts.configs.seal(JSON.parse(active.body));
    return { event: { type: 'OVERTAKEN', ncid: active.ncid, fingerprint }, blobs };
  }

  /** 19 hexadecimal digits of a keyed hash and 13 of the time: a retried apply gets the ncid of its first run. */
  #newNcid(effect: string, at: number): string {
    const digits = this.#parts.vault.fingerprint({ effect, at }).slice('fp_'.length);
    return `${digits.slice(0, 19)}${String(at).padStart(13, '0')}`;
  }

  async #config(): Promise<NetworkConfig> {
    return JSON.parse((await this.active()).body);
  }
}

function applied(
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
function refusal(error: unknown): LogEvent {
  if (error instanceof KernelRefusal) return failed(error.message);
  if (isCoded(error, 'HF_ROUTER_GENERATE') || isCoded(error, 'HF_ROUTER_KERNEL'))
    return failed(error.what, error.code);
  throw error;
}

/** Nothing was written. */
function unavailable({ what, code, status }: HoldfastError): LogEvent {
  return { type: 'APPLY_FAILED', errors: [what], code, status };
}

function failed(reason: string, code: ErrorCode = 'HF_ROUTER_APPLY_FAILED'): LogEvent {
  return { type: 'APPLY_FAILED', errors: [reason], code, status: 500 };
}

function refusedWan(reason: string): LogEvent {
  return { type: 'WAN_REFUSED', reason };
}
