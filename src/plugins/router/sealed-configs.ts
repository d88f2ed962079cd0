import type { NetworkConfig } from '../../core/adapters/router.ts';
import type { Blobs, EventLog } from '../../core/log/index.ts';
import type { Vault } from '../../core/secrets/index.ts';
import { CONFIG_PURPOSE } from './store/reader.ts';

export interface SealedConfig {
  readonly fingerprint: string;
  /** The sealed body, to travel beside the event that names the fingerprint. */
  readonly blobs: Blobs;
}

/** Whole configs in the log's keeping: machines know their fingerprints, records never hold them (R32). */
export class SealedConfigs {
  readonly #log: Pick<EventLog, 'blob'>;
  readonly #vault: Vault;

  constructor(log: Pick<EventLog, 'blob'>, vault: Vault) {
    this.#log = log;
    this.#vault = vault;
  }

  /** Of the config without its ncid: posting what is active keeps it. */
  fingerprint({ ncid: _, ...rest }: NetworkConfig): string {
    return this.#vault.fingerprint(rest);
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
    return sealed && (JSON.parse(this.#vault.open(sealed, CONFIG_PURPOSE)) as NetworkConfig);
  }
}
