import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { KernelError } from '../errors/kernel-error.ts';
import { chainHash } from './chain-hash.ts';
import type { HistoryReader, RawRecord, ReadRange, SearchRange } from './event-log.ts';
import { type MissingRange, readMissing } from './missing.ts';
import type { LogRecord } from './record.ts';
import { parseRecord } from './record.ts';
import { indexTable, missingInIndex } from './record-index.ts';
import { digestOf, newestFull } from './saved-states.ts';
import { hasTable, openForReading, sound } from './schema.ts';
import { StoredBodies } from './sealed-bodies.ts';
import type { Signature } from './signing.ts';
import { newestSignature, signatureOf, signaturesBetween } from './signing.ts';

/** Records that are read at once: the event loop waits for them. */
const PAGE = 250;
/** Records of one actor that are looked at in a step of a search among them. */
const STEP = 250;

/** What the records of a search have in common. */
interface Wanted {
  readonly correlation: string | undefined;
  readonly actor: string | undefined;
}

function rawRecordOf({ seq, actor, correlation, body, hash }: Record<string, SQLOutputValue>): RawRecord {
  return {
    seq: Number(seq),
    actor: String(actor),
    correlation: String(correlation),
    body: String(body),
    hash: String(hash),
  };
}

/**
 * Reads the log of a data folder, also while a runtime writes it; or one that `openReader` made of a file.
 *
 * @public
 */
export class SqliteReader implements HistoryReader {
  readonly #db: DatabaseSync;
  /** By their text: to prepare one takes as long as to read a record. */
  readonly #statements = new Map<string, StatementSync>();
  /** Whether records of some actors only are here: then gaps are no fault. */
  readonly partial: boolean;
  readonly #hasLinks: boolean;
  readonly #hasSignatures: boolean;
  readonly #hasCheckpoints: boolean;
  readonly #hasIndex: boolean;
  #missing: readonly MissingRange[] | undefined;
  readonly #bodies: StoredBodies;

  /**
   * @param source a data folder, or a database with the tables of a log, which is closed with the reader
   * @throws HF_LOG_MISSING, HF_LOG_FORMAT
   */
  constructor(source: string | DatabaseSync) {
    this.#db = typeof source === 'string' ? openForReading(source) : source;
    const has = (name: string) => sound(() => hasTable(this.#db, name));
    this.partial = this.#get("SELECT 1 FROM meta WHERE key = 'partial'") !== undefined;
    this.#hasLinks = has('links');
    this.#bodies = new StoredBodies(this.#db, typeof source === 'string' ? source : undefined);
    this.#hasSignatures = has('signatures');
    this.#hasCheckpoints = has('checkpoints');
    this.#hasIndex = has(indexTable('correlation'));
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
  *pages({
    from,
    to,
    actor,
    correlation,
    reverse,
    limit,
    holding = [],
  }: SearchRange = {}): Iterable<RawRecord[]> {
    const wanted = { correlation, actor };
    const [low, high] = [Math.max(from ?? 1, this.#begin()), to ?? Number.MAX_SAFE_INTEGER];
    const indexed = correlation === undefined && actor === undefined ? 0 : this.#indexed();
    const values = [correlation, actor].filter((value) => value !== undefined);
    const parts = [
      { low, high: Math.min(high, indexed), values, query: () => this.#indexedQuery(wanted, reverse) },
      {
        ...{ low: Math.max(low, indexed + 1), high, values: [...values, ...holding] },
        query: () => this.#tableQuery(wanted, reverse, holding),
      },
    ].filter((part) => part.low <= part.high);
    const size = Math.min(limit ?? PAGE, PAGE);
    for (const part of reverse ? parts.toReversed() : parts) {
      const query = part.query();
      for (let [first, last] = [part.low, part.high]; first <= last; ) {
        const bounds = [...part.values, first, last, size];
        const page = sound(() => query.all(...bounds)).map(rawRecordOf);
        const end = page.at(-1);
        if (end) yield page;
        if (!end || page.length < size) break;
        if (reverse) last = end.seq - 1;
        else first = end.seq + 1;
      }
    }
  }

  #tableQuery(
    { correlation, actor }: Wanted,
    reverse: boolean | undefined,
    holding: readonly string[],
  ): StatementSync {
    const where = [
      ...(correlation === undefined ? [] : ['correlation = ?']),
      ...(actor === undefined ? [] : ['actor = ?']),
      ...(holding.length === 0 ? [] : [`(${holding.map(() => 'instr(body, ?)').join(' OR ')})`]),
    ];
    return this.#prepare(
      `SELECT seq, actor, correlation, body, hash FROM records
       WHERE ${[...where, 'seq BETWEEN ? AND ?'].join(' AND ')} ORDER BY seq ${reverse ? 'DESC' : 'ASC'} LIMIT ?`,
    );
  }

  /** The index only says where to look: a record counts when it is what was asked for. */
  #indexedQuery({ correlation, actor }: Wanted, reverse = false): StatementSync {
    const column = correlation === undefined ? 'actor' : 'correlation';
    const other = correlation === undefined || actor === undefined ? '' : 'AND r.actor = ?';
    return this.#prepare(
      `SELECT r.seq, r.actor, r.correlation, r.body, r.hash
       FROM ${indexTable(column)} AS i CROSS JOIN records AS r ON r.seq = i.seq AND r.${column} = i.${column}
       WHERE i.${column} = ? ${other} AND i.seq BETWEEN ? AND ? ORDER BY i.seq ${reverse ? 'DESC' : 'ASC'} LIMIT ?`,
    );
  }

  /** The newest record that the index by actor and correlation holds; an earlier release made none. */
  #indexed(): number {
    return this.#hasIndex ? Number(this.#text("SELECT value FROM meta WHERE key = 'indexed'") ?? 0) : 0;
  }

  lastSeq(): number {
    return this.#number('SELECT max(seq) FROM records');
  }

  /** The oldest seq kept, 0 when the log is empty. */
  firstSeq(): number {
    return this.#number('SELECT min(seq) FROM records WHERE seq >= ?', this.#begin());
  }

  /** Bytes of the database that hold something. */
  usedBytes(): number {
    const pragma = (name: string) => this.#number(`PRAGMA ${name}`);
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  }

  /** Older records have been taken away, though some may still wait to be deleted. */
  #begin(): number {
    return Number(this.#text("SELECT value FROM meta WHERE key = 'begin'") ?? 1);
  }

  /** @throws HF_LOG_RANGE there is no such record */
  record(seq: number): LogRecord {
    const body = this.#text('SELECT body FROM records WHERE seq = ? AND seq >= ?', seq, this.#begin());
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
    return this.#seqOfActor(
      actor,
      upTo,
      `json_extract(body, '$.from') IS NOT json_extract(body, '$.to.value')`,
    );
  }

  /** Finds the newest record of an actor, not after `upTo`, that set a field of its context to a number. @returns its seq */
  contextSet(
    actor: string,
    upTo: number,
    field: string,
    value: number,
  ): Generator<undefined, number | undefined> {
    return this.#seqOfActor(actor, upTo, 'json_extract(body, ?) = ?', `$.to.context.${field}`, value);
  }

  *#seqOfActor(
    actor: string,
    upTo: number,
    fits: string,
    ...values: SQLInputValue[]
  ): Generator<undefined, number | undefined> {
    const [begin, indexed] = [this.#begin(), this.#indexed()];
    const inTable = `SELECT seq FROM records WHERE actor = ? AND seq BETWEEN ? AND ? AND ${fits} ORDER BY seq DESC LIMIT 1`;
    const late = this.#number(inTable, actor, Math.max(begin, indexed + 1), upTo, ...values);
    if (late > 0 || indexed === 0) return late || undefined;
    const next = `SELECT i.seq, records.body FROM ${indexTable('actor')} AS i CROSS JOIN records USING (seq)
      WHERE i.actor = ? AND i.seq BETWEEN ? AND ? AND records.actor = i.actor ORDER BY i.seq DESC LIMIT ${STEP}`;
    const step = `SELECT max(CASE WHEN ${fits} THEN seq END) AS found, min(seq) AS low FROM (${next})`;
    for (let high = Math.min(upTo, indexed); ; ) {
      const { found, low } = this.#get(step, ...values, actor, begin, high) ?? {};
      if (typeof found === 'number') return found;
      if (typeof low !== 'number') return undefined;
      high = low - 1;
      yield;
    }
  }

  /** Hash of a record, to check the chain from there on. */
  hashOf(seq: number): string | undefined {
    return this.#text('SELECT hash FROM records WHERE seq = ?', seq);
  }

  /** The hash that a record chains to: that of the one before, or the one an export kept of a record left out. */
  hashBefore(seq: number): string | undefined {
    const hash = this.hashOf(seq - 1);
    if (hash !== undefined || !this.#hasLinks) return hash;
    return this.#text('SELECT hash FROM links WHERE seq = ?', seq);
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
    return this.#hasSignatures ? this.#number('SELECT max(seq) FROM signatures') : 0;
  }

  /** The newest signature that a key made. */
  newestSignature(key: string): Signature | undefined {
    return this.#hasSignatures ? sound(() => newestSignature(this.#db, key)) : undefined;
  }

  /** The signature of the begin of the log, where older records were deleted; undefined when there is none. */
  begin(): Signature | undefined {
    if (!this.#hasLinks) return undefined;
    const first = this.firstSeq();
    const row = this.#get('SELECT seq, hash, key, signature FROM links WHERE seq = ?', first);
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
    if (!this.#hasCheckpoints) return 0;
    return this.#number('SELECT max(seq) FROM checkpoints WHERE seq <= ?', upTo);
  }

  /**
   * The state of every actor that was saved at a checkpoint, as saved.
   *
   * @param at from `snapshotSeq`
   * @throws HF_LOG_CORRUPT they are not what was saved
   */
  snapshots(at: number): string[] {
    for (const { seq, digest } of this.checkpointsFor(at)) {
      if (this.digestAt(seq) === digest) continue;
      const reason = 'the states saved after it are not what was saved';
      throw new KernelError('HF_LOG_CORRUPT', { seq, reason });
    }
    if (!this.#hasCheckpoints) return [];
    const newest = 'SELECT max(seq), body FROM snapshots WHERE seq BETWEEN ? AND ? GROUP BY actor';
    const rows = sound(() => this.#prepare(newest).all(newestFull(this.#db, at), at));
    return rows.map(({ body }) => String(body));
  }

  *snapshotPages(at: number): Iterable<string[]> {
    if (!this.#hasCheckpoints) return;
    const next = this.#prepare(
      'SELECT actor, body FROM snapshots WHERE seq = ? AND actor > ? ORDER BY actor LIMIT ?',
    );
    for (const { seq } of this.checkpointsFor(at)) {
      for (let after = ''; ; ) {
        const rows = sound(() => next.all(seq, after, PAGE));
        if (rows.length > 0) yield rows.map(({ body }) => String(body));
        if (rows.length < PAGE) break;
        after = String(rows.at(-1)?.actor);
      }
    }
  }

  /** The checkpoints that the states at one of them are made of, as they were signed. @param at from `snapshotSeq` */
  checkpointsFor(at: number): { seq: number; digest: string; signature: string }[] {
    if (!this.#hasCheckpoints) return [];
    const between = 'SELECT seq, digest, signature FROM checkpoints WHERE seq BETWEEN ? AND ? ORDER BY seq';
    const rows = sound(() => this.#prepare(between).all(newestFull(this.#db, at), at));
    return rows.map(({ seq, digest, signature }) => ({
      seq: Number(seq),
      digest: String(digest),
      signature: String(signature),
    }));
  }

  /** The newest saved state of one actor that is not after `upTo`, as saved. */
  snapshotOf(actor: string, upTo: number): string | undefined {
    const newest = 'SELECT body FROM snapshots WHERE actor = ? AND seq <= ? ORDER BY seq DESC LIMIT 1';
    return this.#text(newest, actor, this.snapshotSeq(upTo));
  }

  /** The digest of the states that were saved at a seq, as they are now; undefined when they are not kept. */
  digestAt(seq: number): string | undefined {
    if (!this.#hasCheckpoints) return undefined;
    const checkpoint = this.#get('SELECT "full" FROM checkpoints WHERE seq = ?', seq);
    return checkpoint && sound(() => digestOf(this.#db, seq, checkpoint.full === 1).digest);
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
    if (!this.#hasCheckpoints) return undefined;
    return this.#number('SELECT min(seq) FROM checkpoints WHERE seq >= ?', seq) || undefined;
  }

  #missingInIndex(): string | undefined {
    const missing = this.#hasIndex ? missingInIndex(this.#db, this.#begin()) : undefined;
    return missing && `record ${missing.seq} is missing in the index by ${missing.column}`;
  }

  /** Everything that SQLite's own check, and that of the index, find wrong with the file, at most so many texts. */
  damages(most: number): string[] {
    try {
      const rows = this.#db.prepare(`PRAGMA integrity_check(${most})`).all();
      const texts = rows.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok');
      const missing = this.#hasIndex ? missingInIndex(this.#db, this.#begin()) : undefined;
      if (missing) texts.push(`record ${missing.seq} is missing in the index by ${missing.column}`);
      return texts;
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  }

  /** Every checkpoint of saved states, as it was signed. */
  checkpoints(): { seq: number; digest: string; signature: string }[] {
    if (!this.#hasCheckpoints) return [];
    const rows = sound(() => this.#db.prepare('SELECT seq, digest, signature FROM checkpoints').all());
    return rows.map(({ seq, digest, signature }) => ({
      seq: Number(seq),
      digest: String(digest),
      signature: String(signature),
    }));
  }

  /** Actors under whose name the state of another one is saved. */
  misplacedStates(): string[] {
    const other = `SELECT actor FROM snapshots WHERE json_valid(body) AND json_extract(body, '$.ref') IS NOT actor`;
    return sound(() => this.#db.prepare(`${other} LIMIT 20`).all()).map(({ actor }) => String(actor));
  }

  /** What is wrong with each stored body that cannot be opened. */
  damagedBodies(): string[] {
    return this.#bodies.damaged();
  }

  close(): void {
    this.#db.close();
  }

  #get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return sound(() => this.#prepare(sql).get(...values));
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** The first column of the first row; undefined without a row, or when the column is not text. */
  #text(sql: string, ...values: SQLInputValue[]): string | undefined {
    const value = Object.values(this.#get(sql, ...values) ?? {})[0];
    return typeof value === 'string' ? value : undefined;
  }

  /** The first column of the first row; 0 without a row, or when the column is not a number. */
  #number(sql: string, ...values: SQLInputValue[]): number {
    const value = Object.values(this.#get(sql, ...values) ?? {})[0];
    return typeof value === 'number' ? value : 0;
  }
}
