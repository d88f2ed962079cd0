import { defineToken, type Token } from './token.ts';

/** A snapshot as the store lists it. */
export interface SnapshotDescription {
  readonly name: string;
  /** In the store's own format; undefined when it gives none. */
  readonly createdAt?: string | undefined;
  /** Bytes. */
  readonly size: number;
  /** Absent or null for those in an object store; never a proof (B4). */
  readonly checksum?: string | undefined;
}

export type PointId = number | string;

/** One memory: its vector and what is kept with it. */
export interface Point {
  readonly id: PointId;
  readonly vector?: unknown;
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
}

/** A point as the store gave it. */
export interface StoredPoint extends Point {
  /** The digest of its payload and vectors (`pointDigest`), the same whoever takes it. */
  readonly digest: string;
}

/** A point by its id and the digest of what it holds. */
export interface DigestedPoint {
  readonly id: PointId;
  readonly digest: string;
}

export interface CollectionInfo {
  /** e.g. `green` */
  readonly status: string;
  /** Approximate by contract: shown, never compared. */
  readonly pointsCount: number;
  /** The collection's vector parameters, as the store reports them. */
  readonly vectors: unknown;
}

/** What an instance reports about itself. */
export interface About {
  readonly title: string;
  readonly version: string;
  /** An embedded store identifies this very instance; a copy of it has another identity. */
  readonly instance?: string | undefined;
  /** Whether it gives the digests of all points of a collection as of one moment; Holdfast's own does. */
  readonly digests?: boolean | undefined;
}

/**
 * A vector store, by its REST surface. All calls have deadlines, and retry a 429 after the time that it names.
 * They throw HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED (with the store's own text) and HF_MEMORY_ANSWER.
 */
export interface MemoryStore {
  /** Scheme, host and port; without credentials. */
  readonly url: string;
  ready(signal?: AbortSignal): Promise<boolean>;
  /** What the instance reports about itself, e.g. its version. */
  about(signal?: AbortSignal): Promise<About>;
  collection(collection: string, signal?: AbortSignal): Promise<CollectionInfo | undefined>;
  /** Makes a collection of one vector a point, compared by cosine. @param size numbers in a vector */
  createCollection(collection: string, size: number, signal?: AbortSignal): Promise<void>;
  /** Exact. */
  count(collection: string, signal?: AbortSignal): Promise<number>;
  /** Those of `ids` that exist, with payload and vector, in no order. */
  points(collection: string, ids: readonly PointId[], signal?: AbortSignal): Promise<readonly StoredPoint[]>;
  /** A page of points by id; `next` is where the following one begins, undefined after the last. */
  scroll(
    collection: string,
    page: { readonly from?: PointId | undefined; readonly limit: number; readonly vectors: boolean },
    signal?: AbortSignal,
  ): Promise<{ readonly points: readonly StoredPoint[]; readonly next?: PointId | undefined }>;
  /**
   * Every point by id, page by page. A store that gives digests takes them of its rows as of one moment; of another one every
   * payload and vector is read.
   */
  digests(collection: string, signal?: AbortSignal): AsyncIterable<readonly DigestedPoint[]>;
  upsert(collection: string, points: readonly Point[], signal?: AbortSignal): Promise<void>;
  /** Removes points; ids that do not exist are passed over. */
  remove(collection: string, ids: readonly PointId[], signal?: AbortSignal): Promise<void>;
  /** The points nearest to a vector, the best first, without their vectors. */
  search(
    collection: string,
    vector: readonly number[],
    limit: number,
    signal?: AbortSignal,
  ): Promise<readonly (Pick<Point, 'id' | 'payload'> & { readonly score: number })[]>;
  snapshots(collection: string, signal?: AbortSignal): Promise<readonly SnapshotDescription[]>;
  createSnapshot(collection: string, signal?: AbortSignal): Promise<SnapshotDescription>;
  deleteSnapshot(collection: string, name: string, signal?: AbortSignal): Promise<void>;
  /**
   * Reads the whole file of a snapshot.
   *
   * @returns its SHA-256 in hexadecimal digits, and its bytes
   */
  snapshotDigest(
    collection: string,
    name: string,
    signal?: AbortSignal,
  ): Promise<{ readonly sha256: string; readonly size: number }>;
  /** Where another instance finds it. */
  snapshotUrl(collection: string, name: string): string;
  /** @param location URL of a snapshot, which the store fetches itself; resolves when the store has answered `result: true` */
  recover(collection: string, location: string, signal?: AbortSignal): Promise<void>;
}

/** The live memory store, and how to reach another one of its kind. */
export interface MemoryStores {
  readonly kind: 'embedded' | 'remote';
  /** The collection that is kept. */
  readonly collection: string;
  readonly live: MemoryStore;
  /**
   * @param url of a scratch instance. The live store's key is sent there in one case only: a request to recover from a snapshot of
   * the live store has it as `api_key`, because the instance needs it to fetch the snapshot.
   */
  at(url: string): MemoryStore;
}

/** Provided by the plugin that speaks to a memory store, or is one. */
export const MemoryStoresToken: Token<MemoryStores> = defineToken('memory.stores');

/** The memory store of this process, as the plugin that is one gives it to the plugin that speaks to one. */
export interface MemoryInstance {
  /** Scheme, host and port. @throws HF_MEMORY_STORE_FAILED before it listens */
  readonly url: string;
  /** Fingerprint of its certificate, where it speaks TLS. */
  readonly pin?: string | undefined;
  readonly apiKey: () => string | undefined;
  /**
   * A copy of all collections as they are at one moment.
   *
   * @param file absolute; it appears whole or not at all
   * @throws HF_MEMORY_STORE_BUSY, HF_MEMORY_STORE_FULL, HF_MEMORY_STORE_FAILED
   */
  readonly copyTo: (file: string) => Promise<void>;
  /** Whether anything was ever stored; the call starts no thread. */
  readonly isUsed: () => boolean;
}

/** Provided where the memory store is embedded. */
export const MemoryInstanceToken: Token<MemoryInstance> = defineToken('memory.instance');

/** An instance that lives for one drill; it carries a marker and an expiry, and is swept at a start. */
export interface ScratchInstance {
  readonly id: string;
  readonly url: string;
}

/** `file`: absolute path of an earlier copy, which stays as it is. */
export type ScratchOrigin = 'empty' | 'volume-copy' | { readonly file: string };

/** Where scratch instances come from. */
export interface ScratchStores {
  /** e.g. `embedded`, `configured`, `cluster` */
  readonly kind: string;
  /**
   * @param id names the instance; a repeated call (after a crash) returns the same one
   * @param from an empty instance, or one opened on a copy of the live store's volume, made now or earlier
   * @throws HF_RESTORE_SCRATCH
   */
  create(id: string, from: ScratchOrigin, signal: AbortSignal): Promise<ScratchInstance>;
  /** Removing one that does not exist is no error. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** The instances that exist now, of this and of earlier runs. */
  list(signal: AbortSignal): Promise<readonly { readonly id: string; readonly expiresAt: number }[]>;
}

/** Provided beside `MemoryStoresToken`, by the plugin that can make an instance. */
export const ScratchStoresToken: Token<ScratchStores> = defineToken('memory.scratch');

/** A point by its id, and the vault's fingerprint of its content. */
export interface PointFingerprint {
  readonly id: PointId;
  readonly fingerprint: string;
}

/** What a collection held, whole: any restore of it must reproduce each point. */
export interface RecordedContent {
  /** Exact. */
  readonly count: number;
  /** Set where points came or went while it was read: a restore holds as many as one of the two, or between. */
  readonly countAfter?: number | undefined;
  /** The fingerprints of all points in one number, in whatever order they are; absent where points were written meanwhile. */
  readonly digest?: string | undefined;
  /** Points that were written while it was read: a restore may hold either of the two states. */
  readonly written: number;
  /** The collection's vector parameters, canonical JSON. */
  readonly vectors: string;
  /** SHA-256 of the list of all fingerprints, which is a file of the data folder. */
  readonly list: string;
}

/** A point of a recorded content: the fingerprints that a restore may have, `undefined` for its absence. */
export interface RecordedPoint {
  readonly id: PointId;
  readonly states: readonly [string | undefined, ...(string | undefined)[]];
}

/** What is known of a snapshot, or of a copy of the volume: what any restore of it must reproduce (B4). */
export interface SnapshotRecord {
  readonly name: string;
  /** When it was made, epoch milliseconds. */
  readonly at: number;
  /**
   * Set for one that somebody else made: when it was first seen, epoch milliseconds. Its content and its file are
   * recorded as they were then, and nobody knows what was before.
   */
  readonly seenAt?: number | undefined;
  /** SHA-256 of its file; absent where that could not be read. */
  readonly sha256?: string | undefined;
  /** Why its file could not be read. */
  readonly unread?: string | undefined;
  readonly content: RecordedContent;
  /** The seeded points that were there and not written meanwhile. */
  readonly seeds: readonly PointFingerprint[];
}

/** What is known of snapshots and copies of the volume beside what the store says of them. */
export interface SnapshotRecords {
  /** @param backup its name; @returns undefined where nothing is recorded */
  of(backup: string): SnapshotRecord | undefined;
  /** The recorded copies of the embedded store's volume that are there, newest first, with their files. */
  volumeCopies(): Promise<readonly { readonly record: SnapshotRecord; readonly file: string }[]>;
  /**
   * Reads the file of a snapshot, or of a copy of the volume, as it is now.
   *
   * @throws HF_MEMORY_* it cannot be read
   */
  digest(backup: string, signal: AbortSignal): Promise<{ readonly sha256: string }>;
  /** Ids of the points by which an operator recognises the collection. */
  readonly seeds: readonly PointId[];
  /**
   * Reads the list of a recorded content, by id, page by page. What was read counts only once the last point has come.
   *
   * @throws HF_MEMORY_RECORD the list is gone, or is not the one that was recorded
   */
  points(content: RecordedContent): AsyncIterable<readonly RecordedPoint[]>;
  /**
   * Records what the live collection holds while `work` runs: every point before and after it.
   *
   * @throws HF_MEMORY_*, and what `work` throws
   */
  recordDuring<T>(
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<{
    readonly result: T;
    readonly content: RecordedContent;
    readonly seeds: readonly PointFingerprint[];
  }>;
  /** Records the snapshots and the cluster's backups of the volume that nobody has recorded yet. @throws HF_MEMORY_* */
  recordSeen(signal: AbortSignal): Promise<void>;
  /**
   * Takes a snapshot now, recorded as those of the schedule are.
   *
   * @returns its name
   * @throws HF_MEMORY_BACKUP it could not be made, or one is under way
   */
  take(signal: AbortSignal): Promise<string>;
}

/** Provided by the plugin that makes snapshots. */
export const SnapshotRecordsToken: Token<SnapshotRecords> = defineToken('memory.snapshot_records');
