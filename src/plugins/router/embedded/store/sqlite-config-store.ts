import { mkdirSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import type {
  ConfigStore,
  ConfigWrite,
  HistoryEntry,
  StoredConfig,
} from '../../../../core/contracts/config-store.ts';
import type { Vault } from '../../../../core/host/secrets/vault.ts';
import type { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { startWorker } from '../../../../core/kernel/worker.ts';
import { RouterError } from '../../errors.ts';
import { CONFIG_PURPOSE, StoreReader } from './reader.ts';
import { type SaveReply, type SaveRequest, STORE_FORMAT, storeFile } from './schema.ts';

export interface SqliteConfigStoreOptions {
  /** Absolute path of the data folder; the store is `router.db` in it. */
  readonly dataDir: string;
  readonly vault: Vault;
  /** Entries of the history that are kept. */
  readonly historyLimit: number;
}

interface Waiting {
  readonly resolve: (saved: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** The embedded config store: SQLite, whole configs sealed, a worker thread that writes and this thread that reads. */
export class SqliteConfigStore implements ConfigStore {
  readonly #options: SqliteConfigStoreOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #reader: StoreReader | undefined;
  #requests = 0;
  #closed = false;

  private constructor(options: SqliteConfigStoreOptions) {
    this.#options = options;
  }

  /** @throws HF_ROUTER_STORE the file cannot be opened, or another release wrote it */
  static async open(options: SqliteConfigStoreOptions): Promise<SqliteConfigStore> {
    const store = new SqliteConfigStore(options);
    mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
    // A thread takes some 10 MB, and many a runtime never saves: the writer of a store that is there starts with the first save.
    if (!isWhole(storeFile(options.dataDir))) await store.#start();
    store.#reader = new StoreReader(options.dataDir, () => options.vault);
    return store;
  }

  async active(): Promise<StoredConfig | undefined> {
    return this.#reading().active();
  }

  async history(limit: number): Promise<readonly HistoryEntry[]> {
    return this.#reading().history(limit);
  }

  async entry(ncid: string): Promise<StoredConfig | undefined> {
    return this.#reading().entry(ncid);
  }

  async save({ body, changed, ...write }: ConfigWrite): Promise<boolean> {
    if (!this.#worker) await this.#start();
    this.#requests += 1;
    const id = this.#requests;
    const sealed = this.#options.vault.seal(body, CONFIG_PURPOSE);
    const request: SaveRequest = { ...write, id, changed: JSON.stringify(changed), body: sealed };
    return this.#ask(id, () => this.#worker?.postMessage(request));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    if (worker) {
      worker.ref();
      await new Promise((resolve) => {
        worker.once('exit', resolve);
        worker.postMessage('close');
      });
    }
    this.#reader?.close();
  }

  /** Starts the worker; it answers id 0 once the tables are there. */
  #start(): Promise<boolean> {
    if (this.#closed) return Promise.reject(this.#error('it is closed'));
    const { dataDir, historyLimit } = this.#options;
    return this.#ask(0, () => {
      const data = { file: storeFile(dataDir), historyLimit };
      const worker: Worker = startWorker({
        module: './writer',
        base: import.meta.url,
        name: 'router-store-writer',
        data,
        onMessage: (reply: SaveReply) => this.#replied(reply),
        onEnd: (reason) => this.#ended(worker, reason),
      });
      this.#worker = worker;
    });
  }

  #ask(id: number, post: () => void): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      post();
      this.#worker?.ref();
    });
  }

  #replied(reply: SaveReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    // An idle writer keeps no process alive; one that is writing does.
    if (this.#waiting.size === 0) this.#worker?.unref();
    if (reply.ok) waiting?.resolve(reply.saved);
    else waiting?.reject(this.#error(reply.reason));
  }

  /** What was on its way may or may not have been written; the next save starts another writer. */
  #ended(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(this.#error(reason));
    this.#waiting.clear();
  }

  #reading(): StoreReader {
    if (!this.#reader || this.#closed) throw this.#error('it is closed');
    return this.#reader;
  }

  #error(reason: string): HoldfastError {
    return new RouterError('HF_ROUTER_STORE', { file: storeFile(this.#options.dataDir), reason });
  }
}

/** Whether a store of this release is there. Of any other the writer says what is wrong with it, or makes its tables. */
function isWhole(file: string): boolean {
  try {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return db.prepare('PRAGMA user_version').get()?.user_version === STORE_FORMAT;
    } finally {
      db.close();
    }
  } catch {
    return false;
  }
}
