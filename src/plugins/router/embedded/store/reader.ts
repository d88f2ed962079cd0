import { existsSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { HistoryEntry, StoredConfig } from '../../../../core/contracts/config-store.ts';
import type { Vault } from '../../../../core/host/secrets/vault.ts';
import { RouterError } from '../../errors.ts';
import { SELECT_ACTIVE, SELECT_ENTRY, SELECT_HISTORY, storeFile } from './schema.ts';

/** What a sealed config was sealed for, in the store and in the log. */
export const CONFIG_PURPOSE = 'router.config';

/**
 * Reads `router.db`, also while a runtime writes it. Reads are synchronous: in WAL mode they wait for no writer and
 * sync nothing, and what they see is what is committed.
 */
export class StoreReader {
  readonly #db: DatabaseSync;
  readonly #active: StatementSync;
  readonly #activeId: StatementSync;
  readonly #history: StatementSync;
  readonly #entry: StatementSync;
  readonly #vault: () => Vault;
  #cached: (StoredConfig & { readonly id: number }) | undefined;

  /**
   * @param vault called when there is a body to open: reading an absent store must not make keys for it
   * @throws HF_ROUTER_STORE_MISSING there is none
   * @throws HF_ROUTER_STORE it cannot be read
   */
  constructor(dataDir: string, vault: () => Vault) {
    const file = storeFile(dataDir);
    if (!existsSync(file)) throw new RouterError('HF_ROUTER_STORE_MISSING', { folder: dataDir });
    this.#vault = vault;
    try {
      this.#db = new DatabaseSync(file, { readOnly: true });
      this.#db.exec('PRAGMA busy_timeout = 1000');
      this.#active = this.#db.prepare(SELECT_ACTIVE);
      this.#activeId = this.#db.prepare('SELECT config AS id FROM active');
      this.#history = this.#db.prepare(SELECT_HISTORY);
      this.#entry = this.#db.prepare(SELECT_ENTRY);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new RouterError('HF_ROUTER_STORE', { file, reason }, { cause: error });
    }
  }

  active(): StoredConfig | undefined {
    if (this.#cached && this.#activeId.get()?.id === this.#cached.id) return this.#cached;
    const row = this.#active.get();
    if (!row) return undefined;
    const body = this.#vault().open(row.body as Uint8Array, CONFIG_PURPOSE);
    this.#cached = { id: row.id as number, ncid: row.ncid as string, body };
    return this.#cached;
  }

  history(limit: number): HistoryEntry[] {
    return this.#history.all(limit).map((row) => ({
      score: Math.floor((row.at as number) / 1000),
      ncid: row.ncid as string,
      op: row.op as string,
      who: row.who as string,
      changed: JSON.parse(row.changed as string) as string[],
    }));
  }

  entry(ncid: string): StoredConfig | undefined {
    const row = this.#entry.get(ncid);
    return row && { ncid, body: this.#vault().open(row.body as Uint8Array, CONFIG_PURPOSE) };
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}
