import type { DatabaseSync } from 'node:sqlite';
import { KernelError } from '../errors/kernel-error.ts';
import { chainHash } from './chain-hash.ts';
import type { HistoryReader, RawRecord, ReadRange, SearchRange } from './event-log.ts';
import { type MissingRange, readMissing } from './missing.ts';
import type { LogRecord } from './record.ts';
import { parseRecord } from './record.ts';
import { indexTable, missingInIndex } from './record-index.ts';
import { RecordSearch } from './record-search.ts';
import { SavedStateReader, type SignedCheckpoint } from './saved-state-reader.ts';
import { hasTable, openForReading, sound } from './schema.ts';
import { StoredBodies } from './sealed-bodies.ts';
import type { Signature } from './signing.ts';
import { newestSignature, signatureOf, signaturesBetween } from './signing.ts';
import { Statements } from './statements.ts';

/**
 * Reads the log of a data folder, also while a runtime writes it; or one that `openReader` made of a file.
 *
 * @public
 */
export class SqliteReader implements HistoryReader {
  readonly #db: DatabaseSync;
  readonly #statements: Statements;
  readonly #search: RecordSearch;
  readonly #states: SavedStateReader;
  /** Whether records of some actors only are here: then gaps are no fault. */
  readonly partial: boolean;
  readonly #hasLinks: boolean;
  readonly #hasSignatures: boolean;
  readonly #hasIndex: boolean;
  #missing: readonly MissingRange[] | undefined;
  readonly #bodies: StoredBodies;

  /**
   * @param source a data folder, or a database with the tables of a log, which is closed with the reader
   * @throws HF_LOG_MISSING, HF_LOG_FORMAT
   */
  constructor(source: string | DatabaseSync) {
    this.#db = typeof source === 'string' ? openForReading(source) : source;
    this.#statements = new Statements(this.#db);
    const has = (name: string) => sound(() => hasTable(this.#db, name));
    this.partial = this.#statements.get("SELECT 1 FROM meta WHERE key = 'partial'") !== undefined;
    this.#hasLinks = has('links');
    this.#bodies = new StoredBodies(this.#db, typeof source === 'string' ? source : undefined);
    this.#hasSignatures = has('signatures');
    this.#hasIndex = has(indexTable('correlation'));
    this.#search = new RecordSearch(this.#statements, this.#hasIndex);
    this.#states = new SavedStateReader(this.#db, this.#statements, has('checkpoints'));
  }

  async *read(range: ReadRange = {}): AsyncIterable<LogRecord> {
    let left = range.limit ?? Number.POSITIVE_INFINITY;
    for (const page of this.pages(range)) {
      for (const raw of page) {
        if (left <= 0) return;
        left -= 1;
        yield parseRecord(raw.seq, raw.body);
      }
    }
  }

  /**
   * Raw rows a page at a time. Each page is a query of its own: an open iterator would keep the write-ahead log
   * from being checkpointed.
   */
  pages(range: SearchRange = {}): Iterable<RawRecord[]> {
    return this.#search.pages(range);
  }

  lastSeq(): number {
    return this.#statements.number('SELECT max(seq) FROM records');
  }

  /** The oldest seq kept, 0 when the log is empty. */
  firstSeq(): number {
    return this.#statements.number('SELECT min(seq) FROM records WHERE seq >= ?', this.#search.begin());
  }

  /** Bytes of the database that hold something. */
  usedBytes(): number {
    const pragma = (name: string) => this.#statements.number(`PRAGMA ${name}`);
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  }

  /** @throws HF_LOG_RANGE there is no such record */
  record(seq: number): LogRecord {
    const body = this.#statements.text(
      'SELECT body FROM records WHERE seq = ? AND seq >= ?',
      seq,
      this.#search.begin(),
    );
    if (body === undefined)
      throw new KernelError('HF_LOG_RANGE', { seq, first: this.firstSeq(), last: this.lastSeq() });
    return parseRecord(seq, body);
  }

  /**
   * Finds the newest record of an actor, not after `upTo`, that entered another state. Yields between steps: an actor may
   * have stayed in a state for a hundred thousand records.
   *
   * @returns its seq; undefined when it is not in this log any more
   */
  stateEntered(actor: string, upTo: number): Generator<undefined, number | undefined> {
    return this.#search.stateEntered(actor, upTo);
  }

  /** Finds the newest record of an actor, not after `upTo`, that set a field of its context to a number. @returns its seq */
  contextSet(
    actor: string,
    upTo: number,
    field: string,
    value: number,
  ): Generator<undefined, number | undefined> {
    return this.#search.contextSet(actor, upTo, field, value);
  }

  /** Hash of a record, to check the chain from there on. */
  hashOf(seq: number): string | undefined {
    return this.#statements.text('SELECT hash FROM records WHERE seq = ?', seq);
  }

  /** The hash that a record chains to: that of the one before, or the one an export kept of a record left out. */
  hashBefore(seq: number): string | undefined {
    const hash = this.hashOf(seq - 1);
    if (hash !== undefined || !this.#hasLinks) return hash;
    return this.#statements.text('SELECT hash FROM links WHERE seq = ?', seq);
  }

  isChained({ body, hash }: RawRecord, previous: string): boolean {
    return chainHash(previous, body) === hash;
  }

  /** The signatures of records from one seq to another, inclusive, in order. */
  signatures(from = 0, to = Number.MAX_SAFE_INTEGER): Signature[] {
    return this.#hasSignatures ? sound(() => signaturesBetween(this.#db, from, to)) : [];
  }

  /** The newest record that anybody signed; 0 when nobody did. */
  newestSignedSeq(): number {
    return this.#hasSignatures ? this.#statements.number('SELECT max(seq) FROM signatures') : 0;
  }

  /** The newest signature that a key made. */
  newestSignature(key: string): Signature | undefined {
    return this.#hasSignatures ? sound(() => newestSignature(this.#db, key)) : undefined;
  }

  /** The signature of the begin of the log, where older records were deleted; undefined when there is none. */
  begin(): Signature | undefined {
    if (!this.#hasLinks) return undefined;
    const first = this.firstSeq();
    const row = this.#statements.get('SELECT seq, hash, key, signature FROM links WHERE seq = ?', first);
    return row?.signature ? signatureOf(row) : undefined;
  }

  /** @throws HF_LOG_SHREDDED it was here, and was made unreadable; HF_LOG_DAMAGED it was changed */
  blob(name: string): Uint8Array | undefined {
    return this.#bodies.open(name);
  }

  /** The bodies kept here that were stored before a time, epoch milliseconds. */
  blobKeys(before: number): string[] {
    return this.#bodies.keys(before);
  }

  /** The newest seq, not after `upTo`, at which actors were saved; 0 when they never were. */
  snapshotSeq(upTo = Number.MAX_SAFE_INTEGER): number {
    return this.#states.snapshotSeq(upTo);
  }

  /**
   * The state of every actor that was saved at a checkpoint, as saved.
   *
   * @param at from `snapshotSeq`
   * @throws HF_LOG_CORRUPT they are not what was saved
   */
  snapshots(at: number): string[] {
    return this.#states.snapshots(at);
  }

  snapshotPages(at: number): Iterable<string[]> {
    return this.#states.snapshotPages(at);
  }

  /** The checkpoints that the states at one of them are made of. @param at from `snapshotSeq` */
  checkpointsFor(at: number): SignedCheckpoint[] {
    return this.#states.checkpointsFor(at);
  }

  /** The newest saved state of one actor that is not after `upTo`, as saved. */
  snapshotOf(actor: string, upTo: number): string | undefined {
    return this.#states.snapshotOf(actor, upTo);
  }

  /** The digest of the states that were saved at a seq, as they are now; undefined when they are not kept. */
  digestAt(seq: number): string | undefined {
    return this.#states.digestAt(seq);
  }

  /** What SQLite's own check finds wrong with the file, indices included; undefined when it is sound. */
  damage(): string | undefined {
    try {
      const text = String(this.#db.prepare('PRAGMA integrity_check(1)').get()?.integrity_check);
      if (text !== 'ok') return text;
      return this.#missingInIndex();
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** What a repair could not save, in order; empty for a log that was never repaired. */
  missing(): readonly MissingRange[] {
    this.#missing ??= sound(() => (hasTable(this.#db, 'missing') ? readMissing(this.#db) : []));
    return this.#missing;
  }

  /** Whether a repair signed each of these records as missing. Inclusive. */
  isMissing(from: number, to: number): boolean {
    let next = from;
    for (const range of this.missing()) if (range.from <= next && next <= range.to) next = range.to + 1;
    return next > to;
  }

  /** The oldest checkpoint that is not before a record; undefined when there is none. */
  checkpointFrom(seq: number): number | undefined {
    return this.#states.checkpointFrom(seq);
  }

  #missingInIndex(): string | undefined {
    const missing = this.#hasIndex ? missingInIndex(this.#db, this.#search.begin()) : undefined;
    return missing && `record ${missing.seq} is missing in the index by ${missing.column}`;
  }

  /** Everything that SQLite's own check, and that of the index, find wrong with the file, at most so many texts. */
  damages(most: number): string[] {
    try {
      const rows = this.#db.prepare(`PRAGMA integrity_check(${most})`).all();
      const texts = rows.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok');
      const missing = this.#missingInIndex();
      if (missing !== undefined) texts.push(missing);
      return texts;
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  }

  /** Every checkpoint of saved states. */
  checkpoints(): SignedCheckpoint[] {
    return this.#states.checkpoints();
  }

  /** Actors under whose name the state of another one is saved. */
  misplacedStates(): string[] {
    return this.#states.misplacedStates();
  }

  /** What is wrong with each stored body that cannot be opened. */
  damagedBodies(): string[] {
    return this.#bodies.damaged();
  }

  close(): void {
    this.#db.close();
  }
}
