import { existsSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { newCorrelation } from '../clock.ts';
import { syncPath } from '../durable-file.ts';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { chainHash } from './chain-hash.ts';
import { findDamage } from './damage.ts';
import { type Anchor, Mark, readHead, readMark, writeHead } from './head.ts';
import { lockDataDir } from './lock.ts';
import { insertMissing, type MissingRange, REPAIRED } from './missing.ts';
import { CHECKPOINT, type LogRecord, parseRecord, type StateValue } from './record.ts';
import { indexAll } from './record-index.ts';
import { Salvage, type Salvaged } from './salvage.ts';
import { hasTable, INSERT_RECORD, logFile, openForReading, openForWriting } from './schema.ts';
import {
  insertBegin,
  insertSignature,
  isGenuine,
  type LogKey,
  openLogKey,
  type Signature,
} from './signing.ts';
import { SqliteReader } from './sqlite-reader.ts';

/** What a repair made of a damaged log. */
export interface Repaired {
  readonly records: number;
  readonly first: number;
  /** The record that says what is missing. */
  readonly last: number;
  readonly missing: readonly MissingRange[];
  /** Checkpoints of saved states that are as they were signed. */
  readonly checkpoints: number;
  /** Checkpoints that the damaged log listed. */
  readonly checkpointsFound: number;
  /** Where the damaged original is now. */
  readonly original: string;
}

/**
 * Saves every readable record of a damaged log into a new one in its place, and records there what is missing. The damaged
 * original is kept. Yields bytes that were read. Nothing calls this by itself.
 *
 * @param kept folder in which the original is kept
 * @param now epoch milliseconds
 * @throws HF_LOG_LOCKED an instance runs; HF_LOG_MISSING; HF_LOG_SOUND there is nothing to repair; HF_LOG_LOST not one
 * record can be read; HF_CONFIG_SECRET_INVALID the signing key is damaged
 */
export function* repairLog(dataDir: string, kept: string, now: number): Generator<number, Repaired> {
  if (!existsSync(logFile(dataDir))) throw new KernelError('HF_LOG_MISSING', { dir: dataDir });
  const unlock = lockDataDir(dataDir);
  const work = mkdtempSync(join(dataDir, 'repair-'));
  const salvage = new Salvage();
  let source: DatabaseSync | undefined;
  let reader: SqliteReader | undefined;
  try {
    const key = openLogKey(dataDir);
    try {
      reader = new SqliteReader(dataDir);
      source = openForReading(dataDir);
    } catch (error) {
      if (!isCoded(error)) throw error; // only the pages are left
    }
    if (reader) yield* refuseSound(reader, dataDir);
    yield* salvage.read(dataDir, reader);
    const facts = { key, reader, source, ...notedIn(dataDir, key) };
    const { head, mark, ...repaired } = fill(openForWriting(work), salvage, facts, now);
    reader?.close();
    source?.close();
    [reader, source] = [undefined, undefined];
    replace(dataDir, logFile(work), kept);
    writeHead(dataDir, head);
    const marked = new Mark(dataDir);
    marked.write(mark);
    marked.close();
    return { ...repaired, original: kept };
  } finally {
    reader?.close();
    source?.close();
    salvage.close();
    rmSync(work, { recursive: true, force: true });
    unlock();
  }
}

function* refuseSound(reader: SqliteReader, dataDir: string): Generator<number> {
  const steps = findDamage(reader, dataDir);
  for (let step = steps.next(); ; step = steps.next()) {
    if (!step.done) {
      yield 0;
      continue;
    }
    const { ranges, others } = step.value;
    if (ranges.length === 0 && others.length === 0) throw new KernelError('HF_LOG_SOUND', { dir: dataDir });
    return;
  }
}

interface Facts {
  readonly key: LogKey;
  readonly reader: SqliteReader | undefined;
  readonly source: DatabaseSync | undefined;
  /** Signed, or acknowledged: what is known of the newest records. */
  readonly anchors: readonly Anchor[];
  readonly head: Signature | undefined;
}

function notedIn(dataDir: string, key: LogKey): Pick<Facts, 'anchors' | 'head'> {
  const noted = attempt(() => readHead(dataDir), undefined);
  const head = noted?.key === key.text && isGenuine('record', noted) ? noted : undefined;
  return { head, anchors: [head, readMark(dataDir)].filter((anchor) => anchor !== undefined) };
}

function fill(db: DatabaseSync, salvage: Salvage, facts: Facts, now: number) {
  try {
    // Nobody sees it before it is whole: it needs no journal, and is synced once, at the end.
    db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN');
    const begin = attempt(() => facts.reader?.begin(), undefined);
    const genuine = begin && isGenuine('begin', begin) ? begin : undefined;
    const from = genuine?.seq ?? 1;
    const newest = Math.max(0, ...facts.anchors.map(({ seq }) => seq));
    const written = insertRecords(db, salvage.records(from, genuine?.hash, newest));
    if (!written.last) throw new KernelError('HF_LOG_LOST');
    if (genuine) insertBegin(db, genuine);
    insertSignatures(db, facts);
    if (facts.source) copyBodies(facts.source, db);
    const states =
      facts.reader && facts.source
        ? copyStates(facts.reader, facts.source, db, facts.key)
        : { checkpoints: 0, checkpointsFound: 0 };
    const end = Math.max(written.last.seq, newest);
    const missing = salvage.missing;
    const record = repairRecord(end + 1, missing, written, now);
    const previous = facts.anchors.find(({ seq }) => seq === end)?.hash ?? written.last.hash;
    const body = JSON.stringify(record);
    const hash = chainHash(previous, body);
    if (end > written.last.seq) insertLink(db, record.seq, previous);
    db.prepare(INSERT_RECORD).run(record.seq, record.actor, record.correlation, body, hash);
    if (missing.length > 0) insertMissing(db, facts.key, missing);
    const head = facts.key.sign('record', record.seq, hash);
    insertSignature(db, head);
    indexAll(db);
    db.exec('COMMIT; PRAGMA journal_mode = WAL');
    const { records, first } = written;
    const mark = { seq: record.seq, hash };
    return { records, first, last: record.seq, missing, ...states, head, mark };
  } finally {
    db.close();
  }
}

interface Written {
  readonly records: number;
  readonly first: number;
  readonly last: Salvaged | undefined;
  /** Epoch milliseconds of the last one. */
  readonly at: number;
  /** Where the actor that records the repair stood last. */
  readonly state: StateValue | undefined;
}

function insertRecords(db: DatabaseSync, records: Iterable<Salvaged>): Written {
  const insert = db.prepare(INSERT_RECORD);
  let written: Written = { records: 0, first: 0, last: undefined, at: 0, state: undefined };
  for (const record of records) {
    const { seq, actor, correlation, body, hash, previous } = record;
    insert.run(seq, actor, correlation, body, hash);
    if (previous !== undefined) insertLink(db, seq, previous);
    const { at, to } = parseRecord(seq, body);
    written = {
      records: written.records + 1,
      first: written.first || seq,
      last: record,
      at,
      state: actor === CHECKPOINT.actor ? to.value : written.state,
    };
  }
  return written;
}

function insertLink(db: DatabaseSync, seq: number, hash: string): void {
  db.prepare('INSERT OR REPLACE INTO links (seq, hash) VALUES (?, ?)').run(seq, hash);
}

/** Those that are genuine and sign a record as it was saved. */
function insertSignatures(db: DatabaseSync, { reader, head }: Facts): void {
  const all = [...attempt(() => reader?.signatures() ?? [], []), ...(head ? [head] : [])];
  const hashOf = db.prepare('SELECT hash FROM records WHERE seq = ?');
  for (const signature of all) {
    if (isGenuine('record', signature) && hashOf.get(signature.seq)?.hash === signature.hash)
      insertSignature(db, signature);
  }
}

/** What can be read of the sealed bodies, and the notes of those that were made unreadable. */
function copyBodies(source: DatabaseSync, target: DatabaseSync): void {
  copyRows(source, target, 'blobs', 'SELECT key, body, at, sealed_by FROM blobs');
  if (attempt(() => hasTable(source, 'shredded'), false))
    copyRows(source, target, 'shredded', 'SELECT key, at FROM shredded');
}

/** Rows in their own order, up to the first that cannot be read. */
function copyRows(
  source: DatabaseSync,
  target: DatabaseSync,
  table: string,
  select: string,
  ...values: number[]
): void {
  try {
    for (const row of source.prepare(select).iterate(...values)) {
      const columns = Object.keys(row);
      const places = columns.map(() => '?').join(', ');
      const names = columns.map((name) => `"${name}"`).join(', ');
      target
        .prepare(`INSERT OR IGNORE INTO ${table} (${names}) VALUES (${places})`)
        .run(...Object.values(row));
    }
  } catch {
    // The rest of the table is lost: whoever needs one of these bodies is told that it is not there.
  }
}

/** Checkpoints that are as they were signed; one that builds on another is kept only with it. */
function copyStates(
  reader: SqliteReader,
  source: DatabaseSync,
  target: DatabaseSync,
  key: LogKey,
): Pick<Repaired, 'checkpoints' | 'checkpointsFound'> {
  let copied = 0;
  let isComplete = false;
  const checkpoints = attempt(() => reader.checkpoints(), []);
  for (const { seq, digest, signature } of checkpoints.toSorted((a, b) => a.seq - b.seq)) {
    const isFull = attempt(
      () => source.prepare('SELECT "full" FROM checkpoints WHERE seq = ?').get(seq)?.full === 1,
      false,
    );
    const isSound =
      attempt(() => reader.digestAt(seq), undefined) === digest &&
      isGenuine('states', { seq, hash: digest, key: key.text, signature });
    isComplete = isSound && (isFull || isComplete || copied === 0);
    if (!isComplete) continue;
    copyRows(source, target, 'checkpoints', 'SELECT * FROM checkpoints WHERE seq = ?', seq);
    copyRows(source, target, 'snapshots', 'SELECT * FROM snapshots WHERE seq = ?', seq);
    copied += 1;
  }
  return { checkpoints: copied, checkpointsFound: checkpoints.length };
}

function repairRecord(
  seq: number,
  missing: readonly MissingRange[],
  { at, state = 'stopped' }: Written,
  now: number,
): LogRecord {
  const ranges = missing.map((range) => ({ ...range }));
  return {
    seq,
    at: Math.max(at, now),
    actor: CHECKPOINT.actor,
    machine: 'lifecycle',
    version: 1,
    event: { type: REPAIRED, missing: ranges },
    from: state,
    to: { value: state },
    effects: [],
    correlation: newCorrelation(),
  };
}

/** The original is kept before the new log takes its place; its write-ahead log must not be read with the new one. */
function replace(dataDir: string, repaired: string, kept: string): void {
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  const file = logFile(dataDir);
  for (const suffix of ['', '-wal']) {
    if (existsSync(file + suffix)) linkSync(file + suffix, join(kept, basename(file) + suffix));
  }
  syncPath(repaired);
  syncPath(kept);
  for (const suffix of ['-wal', '-shm']) {
    rmSync(file + suffix, { force: true });
    rmSync(repaired + suffix, { force: true });
  }
  renameSync(repaired, file);
  syncPath(dirname(file));
}

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise; // it is damaged
  }
}
