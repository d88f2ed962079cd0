import type { ConfigStore, StoredConfig } from '../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../core/contracts/router.ts';
import type { Blobs } from '../../core/kernel/log/event-log.ts';
import type { ConfigVersion, SharedState } from '../../machines/router/config-shapes.ts';
import type { SealedConfigs } from './sealed-configs.ts';

/** What stands in the store, as the machine is told of it: fingerprints, and the sealed bodies that go with them. */
export class StoreReadings {
  readonly #store: ConfigStore;
  readonly #configs: SealedConfigs;
  readonly #known: (ncid: string) => ConfigVersion | undefined;

  /** @param known what the machine knows under an ncid, and so what the log still keeps */
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
    const told = { ...rest, previous: before.version };
    return {
      version: { ...version, shared: true, transaction: told },
      blobs: new Map([...blobs, ...before.blobs]),
    };
  }

  /** What another router's transaction reverts to: known here, or an entry of the history. */
  async #before(ncid: string): Promise<{ version: ConfigVersion; blobs: Blobs }> {
    const version = this.#known(ncid);
    if (version) return { version, blobs: new Map() };
    // Without it the revert will say that it cannot: an alert, and a person who restores the config.
    const entry = await this.#store.entry(ncid).catch(() => undefined);
    if (!entry) return { version: { ncid, fingerprint: '' }, blobs: new Map() };
    const { fingerprint, blobs } = this.#configs.seal(JSON.parse(entry.body));
    return { version: { ncid, fingerprint }, blobs };
  }
}
