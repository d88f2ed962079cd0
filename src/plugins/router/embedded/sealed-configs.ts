import type { ConfigStore, StoredConfig } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { Blobs, EventLog } from '../../../core/kernel/log/event-log.ts';
import type { ConfigVersion, SharedState } from '../../../machines/router/config-shapes.ts';
import { CONFIG_PURPOSE } from './store/reader.ts';

export interface SealedConfig {
  readonly fingerprint: string;
  /** The sealed body, to travel beside the event that names the fingerprint. */
  readonly blobs: Blobs;
}

interface KnownText {
  readonly config: NetworkConfig;
  /** Computed when it is first needed. */
  fingerprint?: string;
}

const KEPT = 2;

/**
 * Whole configs, kept encrypted by the log. Machines get only their fingerprints, and records never contain them (R32).
 */
export class SealedConfigs {
  /** What the last texts say: every write needs the active config several times, and a large one takes a tenth of a second. */
  readonly #known = new Map<string, KnownText>();
  /** What was posted last, until it is applied: reading it from the log would mean to decrypt and to parse it again. */
  #posted: { readonly fingerprint: string; readonly config: NetworkConfig } | undefined;
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

  /** @param body a config's JSON text */
  fingerprintOf(body: string): string {
    const known = this.#knownOf(body);
    known.fingerprint ??= this.fingerprint(known.config);
    return known.fingerprint;
  }

  /** @param body a config's JSON text @returns what it says; shared, so it must not be changed */
  parsed(body: string): NetworkConfig {
    return this.#knownOf(body).config;
  }

  remember(body: string, known: KnownText): void {
    this.#known.delete(body);
    this.#known.set(body, known);
    for (const oldest of [...this.#known.keys()].slice(0, -KEPT)) this.#known.delete(oldest);
  }

  #knownOf(body: string): KnownText {
    const known = this.#known.get(body) ?? { config: JSON.parse(body) };
    this.remember(body, known);
    return known;
  }

  seal(config: NetworkConfig): SealedConfig {
    const fingerprint = this.fingerprint(config);
    return {
      fingerprint,
      blobs: new Map([[fingerprint, this.#vault.seal(JSON.stringify(config), CONFIG_PURPOSE)]]),
    };
  }

  /** The same for a config that is about to be applied, which opens it once. */
  sealPosted(config: NetworkConfig): SealedConfig {
    const sealed = this.seal(config);
    this.#posted = { fingerprint: sealed.fingerprint, config };
    return sealed;
  }

  /** @returns undefined when that config is stored nowhere any more */
  open(fingerprint: string): NetworkConfig | undefined {
    const posted = this.#posted;
    if (posted?.fingerprint === fingerprint) {
      this.#posted = undefined;
      return posted.config;
    }
    const sealed = this.#log.blob(fingerprint);
    return sealed && JSON.parse(this.#vault.open(sealed, CONFIG_PURPOSE));
  }
}

/**
 * The content of the store in the form that the machine gets: fingerprints, and the sealed bodies that belong to them.
 */
export class StoreReadings {
  readonly #store: ConfigStore;
  readonly #configs: SealedConfigs;
  readonly #versionOf: (ncid: string) => ConfigVersion | undefined;

  /** @param versionOf the version that the machine knows by an ncid, whose body the log still keeps */
  constructor(
    store: ConfigStore,
    configs: SealedConfigs,
    versionOf: (ncid: string) => ConfigVersion | undefined = () => undefined,
  ) {
    this.#store = store;
    this.#configs = configs;
    this.#versionOf = versionOf;
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

  /** The config that another router's transaction reverts to: one that the machine knows, or an entry of the history. */
  async #before(ncid: string): Promise<{ version: ConfigVersion; blobs: Blobs }> {
    const version = this.#versionOf(ncid);
    if (version) return { version, blobs: new Map() };
    // Without it the revert will fail and raise an alert, and a person must restore the config.
    const entry = await this.#store.entry(ncid).catch(() => undefined);
    if (!entry) return { version: { ncid, fingerprint: '' }, blobs: new Map() };
    const { fingerprint, blobs } = this.#configs.seal(JSON.parse(entry.body));
    return { version: { ncid, fingerprint }, blobs };
  }
}
