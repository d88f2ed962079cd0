import { existsSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { CHAIN_START, chainHash } from './chain-hash.ts';
import type { CheckpointPart, CommitRequest, CommitResult } from './commit-request.ts';
import { Mark, writeHead } from './head.ts';
import { INDEX_EVERY, indexedUpTo, indexSome } from './record-index.ts';
import { emptyWal, pruneSlice, shredBlobs } from './removal.ts';
import { SavedStates } from './saved-states.ts';
import {
  INSERT_RECORD,
  INSERT_RECORDS,
  openForWriting,
  PAGE_BYTES,
  RECORD_COLUMNS,
  RECORDS_AT_ONCE,
} from './schema.ts';
import { type BodyKey, BodyKeys, sealBody } from './sealed-bodies.ts';
import {
  headFile,
  insertSignature,
  type LogKey,
  newestSignature,
  openLogKey,
  type Signature,
} from './signing.ts';

export interface LogWriterOptions {
  readonly dataDir: string;
  /** A signature at least every so many records. */
  readonly signEvery: number;
  /** And with the first record after so long, milliseconds; 12 hours unless set, so that every day has one. */
  readonly signAfterMs?: number;
}

const SIGN_AFTER_MS = 12 * 3_600_000;

interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** The one writing connection of a log: chains records, signs some, and commits them with what belongs to them. */
export class LogWriter {
  readonly #dataDir: string;
  readonly #signEvery: number;
  readonly #signAfterMs: number;
  /** When this process signed last, by its own clock. */
  #signedAt = performance.now();
  readonly #key: LogKey;
  readonly #db: DatabaseSync;
  readonly #states: SavedStates;
  readonly #insertRecord: StatementSync;
  readonly #insertRecords: StatementSync;
  readonly #insertBlob: StatementSync;
  readonly #mark: Mark;
  readonly #bodyKeys: BodyKeys;
  #head: Head;
  /** The newest signature, and whether it is noted beside the key. */
  #signed: { readonly signature: Signature | undefined; readonly noted: boolean };
  /** The newest record in the index. */
  #indexed: number;
  /** Whether this process wrote anything: it does not sign what another one wrote. */
  #wrote = false;

  constructor({ dataDir, signEvery, signAfterMs = SIGN_AFTER_MS }: LogWriterOptions) {
    this.#dataDir = dataDir;
    this.#signEvery = signEvery;
    this.#signAfterMs = signAfterMs;
    this.#key = openLogKey(dataDir);
    this.#mark = new Mark(dataDir);
    this.#bodyKeys = new BodyKeys(dataDir);
    const db = openForWriting(dataDir);
    this.#db = db;
    this.#states = new SavedStates(db, this.#key);
    this.#indexed = indexedUpTo(db);
    this.#signed = { signature: newestSignature(db, this.#key.text), noted: existsSync(headFile(dataDir)) };
    this.#insertRecord = db.prepare(INSERT_RECORD);
    this.#insertRecords = db.prepare(INSERT_RECORDS);
    this.#insertBlob = db.prepare(
      'INSERT OR REPLACE INTO blobs (key, body, at, sealed_by) VALUES (?, ?, ?, ?)',
    );
    const newest = db.prepare('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').get();
    this.#head = newest
      ? { seq: Number(newest.seq), hash: String(newest.hash) }
      : { seq: 0, hash: CHAIN_START };
  }

  /** One transaction, durable when this returns. */
  commit(request: CommitRequest): CommitResult {
    // The noted head may be among the records that are deleted: a newer one is noted first.
    if (request.prune !== undefined) this.#signHead();
    if (request.shred) this.#dropKeys(request.shred); // first, so that from here on no copy can be read
    const bodies = this.#sealed(request);
    const before = this.#head.seq;
    const done = this.#transaction(() => {
      const head = this.#append(request);
      const unsigned = head.seq - (this.#signed.signature?.seq ?? 0);
      const isLate = performance.now() - this.#signedAt >= this.#signAfterMs;
      if (unsigned >= this.#signEvery || (unsigned > 0 && isLate)) this.#sign(head);
      if (head.seq - this.#indexed >= INDEX_EVERY) this.#indexed = indexSome(this.#db, this.#indexed);
      for (const { name, body, key } of bodies) this.#insertBlob.run(name, body, Date.now(), key.id);
      const saved = request.saving && this.#states.add(request.saving);
      if (request.saving?.finish?.keep) this.#dropBlobs(request.saving.finish.keep);
      const more = request.prune !== undefined && pruneSlice(this.#db, this.#key, request.prune);
      if (request.shred) shredBlobs(this.#db, request.shred);
      return { head, done: { saved, more } };
    });
    if (this.#head.seq > before) this.#mark.write(this.#head);
    if (request.saving?.finish?.keep) this.#dropKeys();
    return request.shred ? { ...done, more: !emptyWal(this.#db) } : done;
  }

  /** A part of a checkpoint alone. */
  save(saving: CheckpointPart): void {
    this.commit({ id: 0, firstSeq: this.#head.seq + 1, rows: [], blobs: [], saving });
  }

  /** Deletes some of the records up to one whose states have been saved. @returns whether there are more */
  prune(to: number): boolean {
    const request = { id: 0, firstSeq: this.#head.seq + 1, rows: [], blobs: [], prune: to };
    return this.commit(request).more === true;
  }

  /** Makes blobs unreadable. @returns whether the write-ahead log still has them because somebody reads in it */
  shred(keys: readonly string[]): boolean {
    const request = { id: 0, firstSeq: this.#head.seq + 1, rows: [], blobs: [], shred: keys };
    return this.commit(request).more === true;
  }

  /** Gives free space back to the disk, in pages of the size of a new log; takes as long as the log is. */
  compact(): void {
    const size = Number(this.#db.prepare('PRAGMA page_size').get()?.page_size);
    try {
      // The size of pages changes only outside of WAL mode, which cannot be left while somebody reads.
      if (size !== PAGE_BYTES)
        this.#db.exec(`PRAGMA journal_mode = DELETE; PRAGMA page_size = ${PAGE_BYTES}`);
    } catch {
      // The pages stay as they are until the next time.
    }
    this.#db.exec('VACUUM; PRAGMA journal_mode = WAL; PRAGMA wal_checkpoint(TRUNCATE)');
  }

  /** Notes the newest signature where somebody who has only the database cannot change it. */
  noteHead(): void {
    const { signature, noted } = this.#signed;
    if (noted || !signature) return;
    writeHead(this.#dataDir, signature);
    this.#signed = { signature, noted: true };
  }

  /** Signs what was written, as far as the disk takes it, and lets go of the file. */
  close(): void {
    try {
      if (this.#wrote) this.#signHead();
    } finally {
      this.#mark.close();
      this.#bodyKeys.close();
      this.#db.close();
    }
  }

  #signHead(): void {
    const head = this.#head;
    if (head.seq > (this.#signed.signature?.seq ?? 0)) {
      this.#transaction(() => {
        this.#sign(head);
        return { head, done: {} };
      });
    }
    this.noteHead();
  }

  #transaction(work: () => { head: Head; done: CommitResult }): CommitResult {
    const [signed, indexed] = [this.#signed, this.#indexed];
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const { head, done } = work();
      this.#db.exec('COMMIT');
      this.#head = head;
      this.#wrote = true;
      return done;
    } catch (error) {
      this.#signed = signed;
      this.#indexed = indexed;
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #sign({ seq, hash }: Head): void {
    const signature = this.#key.sign('record', seq, hash);
    insertSignature(this.#db, signature);
    this.#signed = { signature, noted: false };
    this.#signedAt = performance.now();
  }

  #append({ firstSeq, rows }: CommitRequest): Head {
    let { seq: head, hash } = this.#head;
    if (firstSeq > head + 1) throw new Error(`record ${firstSeq} does not follow record ${head}`);
    let seq = firstSeq;
    const values: SQLInputValue[] = [];
    for (let column = 0; column < rows.length; column += 3) {
      const body = rows[column + 2] as string;
      // A batch is sent again when its answer was lost: records that are there already are not written twice.
      if (seq > head) {
        hash = chainHash(hash, body);
        values.push(seq, rows[column] as string, rows[column + 1] as string, body, hash);
        if (values.length === RECORDS_AT_ONCE * RECORD_COLUMNS) {
          this.#insertRecords.run(...values);
          values.length = 0;
        }
        head = seq;
      }
      seq += 1;
    }
    while (values.length > 0) this.#insertRecord.run(...values.splice(0, RECORD_COLUMNS));
    return { seq: head, hash };
  }

  /** Each body under a key of its own, durable before the record that names it. A body to be shredded gets none. */
  #sealed({ blobs, shred = [] }: CommitRequest): { name: string; body: Uint8Array; key: BodyKey }[] {
    const wanted = blobs.filter(([name]) => !shred.includes(name));
    if (wanted.length === 0) return [];
    const keys = this.#bodyKeys.take(wanted.length);
    return keys.map((key, place) => {
      const [name, body] = wanted[place] as (typeof wanted)[number];
      return { name, body: sealBody(key, name, body), key };
    });
  }

  /** Drops the keys of the bodies named, and of those that were removed or replaced in whatever way. */
  #dropKeys(shred: readonly string[] = []): void {
    const named = this.#db.prepare(
      'SELECT sealed_by FROM blobs WHERE sealed_by IS NOT NULL AND key NOT IN (SELECT value FROM json_each(?))',
    );
    const kept = named.all(JSON.stringify(shred)).map((row) => String(row.sealed_by));
    this.#bodyKeys.retain(new Set(kept));
  }

  #dropBlobs(keep: readonly string[]): void {
    this.#db
      .prepare('DELETE FROM blobs WHERE key NOT IN (SELECT value FROM json_each(?))')
      .run(JSON.stringify(keep));
  }
}
