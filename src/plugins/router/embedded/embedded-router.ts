import { setImmediate } from 'node:timers/promises';
import type { ConfigStore, HistoryEntry, StoredConfig } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { Mutex } from '../../../core/host/concurrency.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { EffectContext, EffectOutcome } from '../../../core/kernel/actors/effect.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { FINGERPRINT_PREFIX } from '../../../core/kernel/ids.ts';
import type { Blobs } from '../../../core/kernel/log/event-log.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type {
  ApplyParams,
  ConfigVersion,
  SharedState,
  VerifyParams,
} from '../../../machines/router/config-shapes.ts';
import type { WanParams } from '../../../machines/router/wan.ts';
import { changedPaths, interfaceOf } from '../config/network-config.ts';
import { planReapply } from '../config/reapply.ts';
import { RouterError } from '../errors.ts';
import {
  type AppliedChange,
  type ApplierTargets,
  applied,
  ConfigApplier,
  failed,
  refusal,
  refusedWan,
  unavailable,
} from './applier.ts';
import type { Observed } from './interface-view.ts';
import { type InterfaceState, KernelRefusal } from './kernel/driver.ts';
import type { Snapshot } from './kernel/linux-snapshot.ts';
import type { Wan } from './kernel/steps.ts';
import type { SealedConfigs } from './sealed-configs.ts';
import { StoreReadings } from './sealed-configs.ts';

export interface EmbeddedRouterOptions extends ApplierTargets {
  readonly store: ConfigStore;
  readonly configs: SealedConfigs;
  readonly vault: Vault;
  /**
   * The version with this ncid in the machine's context, if the log still has its body; only needed for a shared store.
   */
  readonly versionOf?: (ncid: string) => ConfigVersion | undefined;
  /** Until an uncommitted transaction reverts, milliseconds; needed for a shared store only. */
  readonly windowMs?: number;
}

/** What handlers of the plugin work with. */
export interface RouterAccess {
  readonly services: Services;
  readonly router: EmbeddedRouter;
}

type LoadedEvent = { type: 'LOADED' } & ConfigVersion & SharedState;

const FOLLOW_DEADLINE_MS = 60_000;
const WINDOW_MS = 120_000;

/**
 * Kernel, generated files and config store, which change together and in one critical section. It carries out what the
 * machine `router-config` decided and decides nothing itself.
 *
 * What a crash leaves, and how it is completed (R9): the record that asks for an apply is durable before the apply begins,
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
 * At the start the machine gets the store's ncid before effects are retried. While an apply is open the machine ignores
 * it, because the retry will report what stands. Otherwise a difference means that the store was written without the
 * API.
 */
export class EmbeddedRouter {
  readonly #store: ConfigStore;
  readonly #applier: ConfigApplier;
  readonly #configs: SealedConfigs;
  readonly #vault: Vault;
  readonly #readings: StoreReadings;
  readonly #windowMs: number;
  readonly #mutex = new Mutex();
  /** Has not begun yet. */
  #reading: Promise<StoredConfig> | undefined;

  constructor({ store, configs, vault, versionOf, windowMs, ...targets }: EmbeddedRouterOptions) {
    this.#store = store;
    this.#applier = new ConfigApplier(targets);
    this.#configs = configs;
    this.#vault = vault;
    this.#readings = new StoreReadings(store, configs, versionOf);
    this.#windowMs = windowMs ?? WINDOW_MS;
  }

  /** Why kernel and files do not have the persisted config; undefined while they have it. */
  fault(): string | undefined {
    return this.#applier.fault();
  }

  /** The persisted config, which is the one that is served (R2). */
  async active(): Promise<StoredConfig> {
    const active = await this.#store.active();
    if (!active) throw new RouterError('HF_ROUTER_STORE', { file: 'of the router', reason: 'it is empty' });
    return active;
  }

  /** The same for those who only read: readers of one turn of the event loop share a reading, which begins after the last of them asked. */
  served(): Promise<StoredConfig> {
    this.#reading ??= setImmediate().then(() => {
      this.#reading = undefined;
      return this.active();
    });
    return this.#reading;
  }

  /** What `served` reads, parsed; shared, so it must not be changed. */
  async servedConfig(): Promise<NetworkConfig> {
    return this.#configs.parsed((await this.served()).body);
  }

  history(limit: number): Promise<readonly HistoryEntry[]> {
    return this.#store.history(limit);
  }

  /** A whole config of the history; undefined where it is kept no longer. */
  version(ncid: string): Promise<StoredConfig | undefined> {
    return this.#store.entry(ncid);
  }

  /** @throws HF_ROUTER_INTERFACE_UNKNOWN the active config has no such interface */
  async interface(intf: string): Promise<{ config: unknown; state: InterfaceState | undefined }> {
    const entry = interfaceOf(await this.#config(), intf);
    if (!entry) throw new RouterError('HF_ROUTER_INTERFACE_UNKNOWN', { intf });
    return { config: entry.config, state: await this.#applier.state(intf) };
  }

  /**
   * The active config beside what the kernel has, for the read routes.
   *
   * @param known what the kernel has, where that is known already; counters are not in it
   */
  async observe(known?: Snapshot): Promise<{ config: NetworkConfig; observed: Observed }> {
    const [config, observed] = await Promise.all([this.#config(), this.#applier.observe(known)]);
    return { config, observed };
  }

  /** Names of the devices that are hardware. */
  hardware(): Promise<readonly string[]> {
    return this.#applier.hardware();
  }

  /**
   * Applies the persisted config to kernel and files, whose state is not known after a start.
   *
   * @param wans the last known state of the WANs
   * @returns the legs whose advertisement differed, after a kill or an edit by hand, from what it is now
   */
  setUp(signal: AbortSignal, wans: ReadonlyMap<string, Wan> = new Map()): Promise<string[]> {
    return this.#mutex.run(async () => {
      this.#applier.recall(wans);
      const config = await this.#config();
      return this.#applier.setUp(config, this.#configs.fingerprint(config), signal);
    });
  }

  /** The config, and every IPv6 address that the kernel has now, by interface; none of an interface it does not know. */
  async addresses(): Promise<{ config: NetworkConfig; addresses: ReadonlyMap<string, readonly string[]> }> {
    const config = await this.#config();
    return { config, addresses: await this.#applier.addresses(config) };
  }

  /** Runs work while no apply is running. */
  whenIdle<T>(work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(work);
  }

  /** Names of the files that the DHCP service reads, including files that an operator placed there. */
  dhcpFiles(): Promise<readonly string[]> {
    return this.#applier.dhcpFiles();
  }

  /** Effect `router.change_wan`: a WAN's new prefix, or that it went down or came up (R17, R39). Idempotent. */
  changeWan(params: WanParams, { signal }: EffectContext): Promise<LogEvent> {
    return this.#mutex.run(async () => {
      const { ncid } = await this.active();
      const config = await this.#config();
      const { observed } = params;
      if (observed) return { type: 'WAN_APPLIED', ncid, reapplied: [...observed] };
      if (!interfaceOf(config, params.wan)) return refusedWan(`the config has no interface ${params.wan}`);
      try {
        return {
          type: 'WAN_APPLIED',
          ncid,
          reapplied: await this.#applier.changeWan(config, params, signal),
        };
      } catch (error) {
        if (error instanceof KernelRefusal) return refusedWan(error.message);
        throw error;
      }
    });
  }

  /** Reads the store when no apply is running. The sealed body is returned too, so that the log keeps it. */
  load(): Promise<{ event: LoadedEvent; blobs: Blobs }> {
    return this.#mutex.run(async () => {
      const active = await this.active();
      const { version, blobs } = await this.#readings.of(active, JSON.parse(active.body));
      return { event: { type: 'LOADED', ...version }, blobs };
    });
  }

  /** Effect `router.verify`: reads the store to find out how an apply without an answer ended. */
  verify(params: VerifyParams): Promise<EffectOutcome> {
    return this.#mutex.run(async () => {
      const active = await this.active();
      const config = this.#configs.parsed(active.body);
      const { op, expected, fingerprint } = params;
      const stands = this.#configs.fingerprintOf(active.body);
      if (op === 'commit' && active.ncid === expected && !active.transaction)
        return { type: 'APPLIED', ncid: expected, fingerprint: stands, reapplied: [] };
      const isSaved = op !== 'reapply' && op !== 'commit' && active.ncid !== expected;
      if (isSaved && stands === fingerprint) {
        await this.#follow(params, config);
        return this.#savedBefore(params, config);
      }
      if (active.ncid !== expected || stands !== params.before) return this.#overtaken(active);
      return failed(params.fault);
    });
  }

  /** Effect `router.apply`. Idempotent by the effect's id. */
  apply(params: ApplyParams, context: EffectContext): Promise<EffectOutcome> {
    return this.#mutex.run(() => this.#apply(params, context));
  }

  async #apply(params: ApplyParams, { id, at, signal, recovered }: EffectContext): Promise<EffectOutcome> {
    let active: StoredConfig;
    try {
      active = this.#latest(params, recovered) ?? (await this.active());
    } catch (error) {
      // A first run has changed nothing yet. Only the store shows how an earlier run ended.
      if (!recovered && isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return unavailable(error);
      throw error;
    }
    const before = this.#configs.parsed(active.body);
    const ncid = this.#newNcid(id, at);
    if (params.op !== 'reapply' && active.ncid === ncid) return this.#savedBefore(params, before);
    // An edit of the store by hand does not change the ncid.
    if (!this.#isExpected(active, params)) return this.#overtaken(active);
    if (params.op === 'commit') return this.#commit(params, active);
    if (params.op === 'reapply') return this.#reapply(params, before, signal);

    const posted = this.#configs.open(params.fingerprint);
    if (!posted) return failed('the config to apply is no longer stored');
    const next: NetworkConfig = { ...posted, ncid };
    const plan = planReapply(this.#applier.isAt(params.before) ? before : undefined, next);
    let change: AppliedChange;
    try {
      change = await this.#applier.change(plan, next, signal);
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
        ...(params.transID !== undefined && {
          transaction: { transID: params.transID, windowMs: this.#windowMs },
        }),
        changed: changedPaths(before, next),
      });
      if (!saved) {
        await change.undo();
        return this.#overtaken(await this.active());
      }
      this.#configs.remember(body, { fingerprint: params.fingerprint, config: next });
    } catch (error) {
      await change.undo();
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return unavailable(error);
      throw error;
    }
    await change.keep(params.fingerprint);
    return applied(ncid, params.fingerprint, plan, before, next);
  }

  /**
   * The store's content without asking, if a save expects just that: it compares once more, in one step with the write, and
   * undoes its change where somebody else was faster. Every other request is rare, and asks.
   */
  #latest(params: ApplyParams, recovered: boolean): StoredConfig | undefined {
    const latest = params.op === 'save' && !recovered ? this.#store.latest?.() : undefined;
    return latest && this.#isExpected(latest, params) ? latest : undefined;
  }

  #isExpected({ ncid, body }: StoredConfig, { expected, before }: ApplyParams): boolean {
    return ncid === expected && this.#configs.fingerprintOf(body) === before;
  }

  /** The save succeeded although its change had been undone: the change is applied to kernel and files again. */
  async #follow({ before, fingerprint }: VerifyParams, config: NetworkConfig): Promise<void> {
    if (this.#applier.isAt(fingerprint)) return;
    try {
      const stands = this.#applier.isAt(before) ? this.#configs.open(before) : undefined;
      const plan = planReapply(stands, config);
      const change = await this.#applier.change(plan, config, AbortSignal.timeout(FOLLOW_DEADLINE_MS));
      await change.keep(fingerprint);
    } catch {
      this.#applier.forget();
    }
  }

  /** A save without an answer may have succeeded, so the store is read. */
  async #save(write: Parameters<ConfigStore['save']>[0]): Promise<boolean> {
    try {
      return await this.#store.save(write);
    } catch (error) {
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) throw error;
      const active = await this.active().catch(() => undefined);
      if (active?.ncid === write.ncid) return true;
      throw error;
    }
  }

  /** `apply_current_config`: applies every instance again and saves nothing (R11). */
  async #reapply(
    { expected, fingerprint }: ApplyParams,
    config: NetworkConfig,
    signal: AbortSignal,
  ): Promise<EffectOutcome> {
    const plan = planReapply(config, config, true);
    try {
      const change = await this.#applier.change(plan, config, signal);
      await change.keep(fingerprint);
    } catch (error) {
      return refusal(error);
    }
    return applied(expected, fingerprint, plan, config, config);
  }

  /** An earlier run of this effect saved the config and was killed before it could report that. */
  #savedBefore(params: ApplyParams, saved: NetworkConfig): LogEvent {
    const { fingerprint } = params;
    const before = this.#configs.open(params.before);
    return applied(String(saved.ncid), fingerprint, planReapply(before, saved), before ?? {}, saved);
  }

  /** A commit on a shared store, which holds the transaction. Nothing is applied and nothing published. */
  async #commit({ transID = '', fingerprint }: ApplyParams, active: StoredConfig): Promise<EffectOutcome> {
    try {
      const isKept = (await this.#store.commit?.(transID, active.ncid)) ?? true;
      if (!isKept) return this.#overtaken(await this.active());
    } catch (error) {
      if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return unavailable(error);
      throw error;
    }
    return { type: 'APPLIED', ncid: active.ncid, fingerprint, reapplied: [] };
  }

  /** Another writer changed the store. Its config becomes the active one, and the kernel follows with the next apply. */
  async #overtaken(active: StoredConfig): Promise<EffectOutcome> {
    const { version, blobs } = await this.#readings.of(active, JSON.parse(active.body));
    return { event: { type: 'OVERTAKEN', ...version }, blobs };
  }

  /** 19 hexadecimal digits of a keyed hash and 13 of the time: a retried apply gets the ncid of its first run. */
  #newNcid(effect: string, at: number): string {
    const digits = this.#vault.fingerprint({ effect, at }).slice(FINGERPRINT_PREFIX.length);
    return `${digits.slice(0, 19)}${String(at).padStart(13, '0')}`;
  }

  async #config(): Promise<NetworkConfig> {
    return JSON.parse((await this.active()).body);
  }
}
