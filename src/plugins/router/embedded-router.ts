import type { EffectContext, EffectOutcome } from '../../core/actors/index.ts';
import type { ConfigStore, HistoryEntry, StoredConfig } from '../../core/adapters/config-store.ts';
import type { NetworkConfig } from '../../core/adapters/router.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import type { Blobs, LogEvent } from '../../core/log/index.ts';
import type { Vault } from '../../core/secrets/index.ts';
import type { ApplyParams } from '../../machines/config-transaction/shapes.ts';
import { changedPaths } from './changed-paths.ts';
import { type InterfaceState, type KernelDriver, KernelRefusal, type Undo } from './kernel/driver.ts';
import { kernelSteps } from './kernel/steps.ts';
import { interfaceOf } from './network-config.ts';
import { planReapply } from './reapply.ts';
import type { SealedConfigs } from './sealed-configs.ts';
import { Section } from './section.ts';

export interface EmbeddedRouterParts {
  readonly store: ConfigStore;
  readonly kernel: KernelDriver;
  readonly configs: SealedConfigs;
  readonly vault: Vault;
}

/**
 * The box: its kernel and its config store, which change together and in one critical section. It carries out what
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
  /** False until the kernel stands as the store says: the next apply is then a whole one. */
  #isSetUp = false;

  constructor(parts: EmbeddedRouterParts) {
    this.#parts = parts;
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

  /** Brings the kernel, of which nothing is known after a start, to the persisted config. */
  setUp(signal: AbortSignal): Promise<void> {
    return this.#section.run(async () => {
      const config = await this.#config();
      await this.#parts.kernel.apply(kernelSteps(planReapply(undefined, config), config), signal);
      this.#isSetUp = true;
    });
  }

  /** Reads the store, after whatever apply may still be running, and hands its body to the log's keeping. */
  load(): Promise<{ event: { type: 'LOADED'; ncid: string; fingerprint: string }; blobs: Blobs }> {
    return this.#section.run(async () => {
      const active = await this.active();
      const { fingerprint, blobs } = this.#parts.configs.seal(JSON.parse(active.body));
      return { event: { type: 'LOADED', ncid: active.ncid, fingerprint }, blobs };
    });
  }

  /** Effect `router.apply`. Idempotent by the effect's id. */
  apply(params: ApplyParams, context: EffectContext): Promise<EffectOutcome> {
    return this.#section.run(() => this.#apply(params, context));
  }

  async #apply(params: ApplyParams, { id, at, signal }: EffectContext): Promise<EffectOutcome> {
    const active = await this.active();
    const before = JSON.parse(active.body) as NetworkConfig;
    if (params.op === 'reapply') return this.#reapply(params, active, before, signal);
    const ncid = this.#newNcid(id, at);
    if (active.ncid === ncid) return this.#savedBefore(params, before);
    if (active.ncid !== params.expected) return this.#overtaken(active);

    const posted = this.#parts.configs.open(params.fingerprint);
    if (!posted) return failed('the config to apply is no longer stored');
    const next: NetworkConfig = { ...posted, ncid };
    const plan = planReapply(this.#isSetUp ? before : undefined, next);
    let undo: Undo;
    try {
      undo = await this.#parts.kernel.apply(kernelSteps(plan, next), signal);
    } catch (error) {
      if (error instanceof KernelRefusal) return failed(error.message);
      throw error;
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
        await undo();
        return this.#overtaken(await this.active());
      }
    } catch (error) {
      await undo();
      throw error;
    }
    this.#isSetUp = true;
    return { type: 'APPLIED', ncid, fingerprint: params.fingerprint, reapplied: plan.interfaces };
  }

  /** A save that failed may have come about: the store knows. */
  async #save(write: Parameters<ConfigStore['save']>[0]): Promise<boolean> {
    try {
      return await this.#parts.store.save(write);
    } catch (error) {
      if ((await this.active()).ncid === write.ncid) return true;
      throw error;
    }
  }

  /** `apply_current_config`: every instance again, nothing saved (R11). */
  async #reapply(
    { expected, fingerprint }: ApplyParams,
    active: StoredConfig,
    config: NetworkConfig,
    signal: AbortSignal,
  ): Promise<EffectOutcome> {
    if (active.ncid !== expected) return this.#overtaken(active);
    const plan = planReapply(config, config, true);
    try {
      await this.#parts.kernel.apply(kernelSteps(plan, config), signal);
    } catch (error) {
      if (error instanceof KernelRefusal) return failed(error.message);
      throw error;
    }
    this.#isSetUp = true;
    return { type: 'APPLIED', ncid: expected, fingerprint, reapplied: plan.interfaces };
  }

  /** An earlier run of this effect saved and was killed before it could say so. */
  #savedBefore(params: ApplyParams, saved: NetworkConfig): LogEvent {
    const { fingerprint } = params;
    const before = this.#parts.configs.open(params.before);
    const { interfaces } = planReapply(before, saved);
    return { type: 'APPLIED', ncid: String(saved.ncid), fingerprint, reapplied: interfaces };
  }

  /** Somebody else wrote the store: it counts, and the kernel follows with the next apply. */
  #overtaken(active: StoredConfig): EffectOutcome {
    this.#isSetUp = false;
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

function failed(reason: string): LogEvent {
  return { type: 'APPLY_FAILED', errors: [reason], code: 'HF_ROUTER_APPLY_FAILED', status: 500 };
}
