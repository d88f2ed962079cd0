import type { EpochMs } from '../kernel/ids.ts';

/** A whole config as it is stored: secret-bearing JSON text, never logged or recorded. */
export interface StoredConfig {
  readonly ncid: string;
  /** The JSON text that `/v1/config/active` serves; its `ncid` field is the one above. */
  readonly body: string;
  /** While one is pending on a shared store. */
  readonly transaction?: StoredTransaction | undefined;
}

/** A transaction as a store that several routers share holds it. */
export interface StoredTransaction {
  readonly transID: string;
  readonly who: string;
  /** The ncid of the config that a revert restores. */
  readonly previous: string;
  /** Until it reverts, milliseconds, by the store's own clock at the moment of the reading. */
  readonly leftMs: number;
}

/** A config to be stored, and what the history says of it. */
export interface ConfigWrite extends Omit<StoredConfig, 'transaction'> {
  /** Set for an append, which opens or renews the transaction for `windowMs`, and for its revert. A shared store refuses other writes meanwhile. */
  readonly transaction?: { readonly transID: string; readonly windowMs: number } | undefined;
  /** The ncid that the store must hold now; undefined for the first config of an empty store. */
  readonly expected: string | undefined;
  readonly at: EpochMs;
  /** `seed` is the first config of an empty store: an entry of the history as soon as there is a write after it. */
  readonly op: 'seed' | 'save' | 'append' | 'revert';
  readonly who: string;
  /** Paths that differ from the config before. */
  readonly changed: readonly string[];
}

/** One accepted write (R13), or the config that was there before the first; its body is the store's to open. */
export interface HistoryEntry {
  /** Epoch seconds. */
  readonly score: number;
  readonly ncid: string;
  readonly op: string;
  readonly who: string;
  readonly changed: readonly string[];
}

/**
 * Where the router's config is stored: one active config, which only a write with its ncid replaces, and then whole; and
 * the history of accepted writes.
 */
export interface ConfigStore {
  /** What is persisted now; undefined while the store is empty. */
  active(): Promise<StoredConfig | undefined>;
  /**
   * What was read or written last, without asking: somebody else may have replaced it since, which only a `save` that
   * expects it finds out. Absent where asking is cheap; undefined while the store cannot be asked.
   */
  latest?(): StoredConfig | undefined;
  /**
   * Replaces the active config and appends to the history, both or neither, durable when it resolves.
   *
   * @returns false when the store holds another ncid than the expected one; nothing is written then
   * @throws HF_ROUTER_STORE the outcome is unknown: read `active` again
   */
  save(write: ConfigWrite): Promise<boolean>;
  /**
   * Ends a transaction so that what it applied stays. Only a store that several routers share has this method, because
   * it holds the transaction itself.
   *
   * @param expected the ncid that the store must hold
   * @returns false when that transaction is not pending there, and was not committed before
   */
  commit?(transID: string, expected: string): Promise<boolean>;
  /** The newest entries, newest first; no body is opened for it. */
  history(limit: number): Promise<readonly HistoryEntry[]>;
  /** @returns the whole config of the entry with that ncid, as it was posted but for the ncid it got */
  entry(ncid: string): Promise<StoredConfig | undefined>;
  close(): Promise<void>;
}
