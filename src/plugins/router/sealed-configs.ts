import type { NetworkConfig } from '../../core/contracts/router.ts';
import type { Vault } from '../../core/host/secrets/vault.ts';
import type { Blobs, EventLog } from '../../core/kernel/log/event-log.ts';
import { CONFIG_PURPOSE } from './store/reader.ts';

export interface SealedConfig {
  readonly fingerprint: string;
  /** The sealed body, to travel beside the event that names the fingerprint. */
  readonly blobs: Blobs;
}

const KEPT = 2;

/** Whole configs in the log's keeping: machines know their fingerprints, records never hold them (R32). */
export class SealedConfigs {
  /** Of the last texts: the active config is asked for with every write, and a large one takes a tenth of a second. */
  readonly #known = new Map<string, string>();
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
    return sealed && (JSON.parse(this.#vault.open(sealed, CONFIG_PURPOSE)) as NetworkConfig);
  }
}
