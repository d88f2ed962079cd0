import type { ConfigStore, StoredConfig } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Blobs, EventLog } from '../../../core/kernel/log/event-log.ts';
import type { ConfigVersion, SharedState } from '../../../machines/router/config-shapes.ts';
import { CONFIG_KEY, configActor } from './config-actor.ts';
import example from './example-network-config.json' with { type: 'json' };
import { CONFIG_PURPOSE } from './store/reader.ts';

export interface SealedConfig {
  readonly fingerprint: string;
  /** The sealed body, to travel beside the event that names the fingerprint. */
  readonly blobs: Blobs;
}

const KEPT = 2;

/** Whole configs in the log's keeping: machines know their fingerprints, records never hold them (R32). */
export class SealedConfigs {
  /** Fingerprints of the last texts: every write needs that of the active config, and a large one takes a tenth of a second. */
  readonly #known = new Map<string, string>();
  readonly #log: Pick<EventLog, 'blob'>;
  readonly #vault: Vault;

  constructor(log: Pick<EventLog, 'blob'>, vault: Vault) {
    this.#log = log;
    this.#vault = vault;
  }

  /** The fingerprint of a config without its ncid, so that posting the active config again does not change it. */
  fingerprint({ ncid: _, ...rest }: NetworkConfig): string {
    return this.#vault.fingerprint(rest);
  }

  /** @param body the config's JSON text @param config what it says */
  fingerprintOf(body: string, config: NetworkConfig): string {
    const fingerprint = this.#known.get(body) ?? this.fingerprint(config);
    this.remember(body, fingerprint);
    return fingerprint;
  }

  remember(body: string, fingerprint: string): void {
    this.#known.delete(body);
    this.#known.set(body, fingerprint);
    for (const oldest of [...this.#known.keys()].slice(0, -KEPT)) this.#known.delete(oldest);
  }

  seal(config: NetworkConfig): SealedConfig {
    const fingerprint = this.fingerprint(config);
    return {
      fingerprint,
      blobs: new Map([[fingerprint, this.#vault.seal(JSON.stringify(config), CONFIG_PURPOSE)]]),
    };
  }

  /** @returns undefined when nothing keeps that config any more */
  open(fingerprint: string): NetworkConfig | undefined {
    const sealed = this.#log.blob(fingerprint);
    return sealed && JSON.parse(this.#vault.open(sealed, CONFIG_PURPOSE));
  }
}

/** What the store holds, as the machine gets it: fingerprints, and the sealed bodies that go with them. */
export class StoreReadings {
  readonly #store: ConfigStore;
  readonly #configs: SealedConfigs;
  readonly #known: (ncid: string) => ConfigVersion | undefined;

  /** @param known the version that the machine knows by an ncid, whose body the log still keeps */
  constructor(
    store: ConfigStore,
    configs: SealedConfigs,
    known: (ncid: string) => ConfigVersion | undefined = () => undefined,
  ) {
    this.#store = store;
    this.#configs = configs;
    this.#known = known;
  }

  /** A reading of the store for the machine, and the bodies that it may need. */
  async of(
    { ncid, transaction }: StoredConfig,
    config: NetworkConfig,
  ): Promise<{ version: ConfigVersion & SharedState; blobs: Blobs }> {
    const { fingerprint, blobs } = this.#configs.seal(config);
    const version = { ncid, fingerprint };
    if (!this.#store.commit) return { version, blobs };
    if (!transaction) return { version: { ...version, shared: true }, blobs };
    const { previous, ...rest } = transaction;
    const before = await this.#before(previous);
    return {
      version: { ...version, shared: true, transaction: { ...rest, previous: before.version } },
      blobs: new Map([...blobs, ...before.blobs]),
    };
  }

  /** The config that another router's transaction reverts to: one known here, or an entry of the history. */
  async #before(ncid: string): Promise<{ version: ConfigVersion; blobs: Blobs }> {
    const version = this.#known(ncid);
    if (version) return { version, blobs: new Map() };
    // Without it the revert will fail and raise an alert, and a person must restore the config.
    const entry = await this.#store.entry(ncid).catch(() => undefined);
    if (!entry) return { version: { ncid, fingerprint: '' }, blobs: new Map() };
    const { fingerprint, blobs } = this.#configs.seal(JSON.parse(entry.body));
    return { version: { ncid, fingerprint }, blobs };
  }
}

/** Where the config that is served came from. */
export type ConfigOrigin = 'store' | 'log' | 'example';

/**
 * Gives an empty store its first config: what the log last knew to be active, when the store's file was lost, else
 * the example. A store that held a transaction, too, has lost it or lost what it is about: it gets what a revert
 * restores, so that nothing uncommitted stays without a deadline.
 */
export async function ensureConfig(
  store: ConfigStore,
  configs: SealedConfigs,
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): Promise<ConfigOrigin> {
  if (await store.active()) return 'store';
  const known = actors.get(configActor, CONFIG_KEY)?.context;
  const pending = store.commit ? known?.pending : undefined;
  const kept = (pending && keptOf(configs, pending.previous)) ?? keptOf(configs, known?.active);
  const config = kept ?? example;
  const saved = await store.save({
    expected: undefined,
    ncid: String(config.ncid),
    body: JSON.stringify(config),
    at: clock.now(),
    op: 'seed',
    who: 'holdfast',
    changed: [],
    // It may still be held there, and refuses whatever is not its own.
    ...(pending && { transaction: { transID: pending.transID, windowMs: 0 } }),
  });
  // Another router filled it in between: its config counts.
  if (!saved) return 'store';
  return kept ? 'log' : 'example';
}

/** The config of a version, where the log still keeps it and it was not shredded. */
function keptOf(configs: SealedConfigs, version: ConfigVersion | undefined): NetworkConfig | undefined {
  if (!version?.fingerprint) return undefined;
  try {
    const body = configs.open(version.fingerprint);
    return body && { ...body, ncid: version.ncid };
  } catch (error) {
    if (isCoded(error, 'HF_LOG_SHREDDED')) return undefined;
    throw error;
  }
}
