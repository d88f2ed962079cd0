import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type HoldfastError, isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { isReadable } from '../ownership.ts';
import { INDEX_TABLES, indexAll } from './record-index.ts';

/** Raised when the tables or the meaning of a record change. */
const LOG_FORMAT = 1;

/** The id of the data key that a body was sealed with; none: it was stored as it was handed in, by an older release. */
const SEALED_BY = 'sealed_by TEXT';

/**
 * A commit writes the last page of the table, its parent and the first page of the file, whole and twice: with small
 * pages that is less. A file that is there already keeps its pages until it is compacted (`log prune`).
 */
export const PAGE_BYTES = 512;
/** The write-ahead log is moved into the database at so many pages: some 4 MB. */
const CHECKPOINT_PAGES = 8_000;

/**
 * `at` stands in the body alone: it is monotone, so a time is found by binary search over seq. The view spares whoever
 * queries an incident by hand the JSON path; a generated column of a strict table would parse every body that is written.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS records (
    seq INTEGER PRIMARY KEY,
    actor TEXT NOT NULL,
    correlation TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE VIEW IF NOT EXISTS timeline AS
    SELECT seq, json_extract(body, '$.at') AS at, actor, correlation, body, hash FROM records;
  ${INDEX_TABLES}
  CREATE TABLE IF NOT EXISTS blobs (
    key TEXT PRIMARY KEY, body BLOB NOT NULL, at INTEGER NOT NULL DEFAULT 0, ${SEALED_BY}
  ) STRICT;
  CREATE TABLE IF NOT EXISTS shredded (key TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshots (
    actor TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (actor, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS snapshots_seq ON snapshots (seq);
  CREATE TABLE IF NOT EXISTS signatures (
    seq INTEGER NOT NULL, hash TEXT NOT NULL, key TEXT NOT NULL, signature TEXT NOT NULL, PRIMARY KEY (seq, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS links (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, key TEXT, signature TEXT) STRICT;
`;

/**
 * Saved states count from the moment that their checkpoint stands here. A full one holds every actor; the others hold
 * those that have changed since the one before.
 */
const CHECKPOINTS = `
  CREATE TABLE checkpoints (
    seq INTEGER PRIMARY KEY, "full" INTEGER NOT NULL, digest TEXT NOT NULL, signature TEXT NOT NULL
  ) STRICT;
`;

/** The statement that adds a record; the benchmark's baseline uses it too. */
export const INSERT_RECORD =
  'INSERT INTO records (seq, actor, correlation, body, hash) VALUES (?, ?, ?, ?, ?)';

/** Values of one record in that order, and how many records one statement adds: each costs a tenth less. */
export const RECORD_COLUMNS = 5;
export const RECORDS_AT_ONCE = 8;
export const INSERT_RECORDS: string = INSERT_RECORD + ', (?, ?, ?, ?, ?)'.repeat(RECORDS_AT_ONCE - 1);

export function logFile(dataDir: string): string {
  return join(dataDir, 'log.db');
}

/**
 * Opens the log for writing and makes its tables. An acknowledged commit has been synced to disk.
 *
 * @throws HF_LOG_FORMAT another release wrote it; HF_LOG_DAMAGED it is no database any more
 * @throws HF_LOG_FOLDER the folder cannot be written
 */
export function openForWriting(dataDir: string): DatabaseSync {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(logFile(dataDir), { timeout: 5_000 });
    db.exec(`
      PRAGMA page_size = ${PAGE_BYTES};
      PRAGMA journal_mode = WAL;
      PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
      PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA secure_delete = ON;
    `);
    logTables(db);
    replaceIndices(db);
    checkFormat(db, dataDir);
    return db;
  } catch (error) {
    db?.close();
    throw unusable(dataDir, error);
  }
}

export function hasTable(db: DatabaseSync, name: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;
}

export function hasColumn(db: DatabaseSync, table: string, name: string): boolean {
  return db.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?').get(table, name) !== undefined;
}

/**
 * Makes the tables of a log where there are none, all of them in one transaction: each by itself would be a sync to disk.
 * States saved without a checkpoint are derived: they are dropped.
 */
export function logTables(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE');
  db.exec(TABLES);
  if (!hasTable(db, 'checkpoints')) db.exec(`DELETE FROM snapshots; ${CHECKPOINTS}`);
  for (const column of ['at INTEGER NOT NULL DEFAULT 0', SEALED_BY]) {
    if (!hasColumn(db, 'blobs', column.slice(0, column.indexOf(' '))))
      db.exec(`ALTER TABLE blobs ADD COLUMN ${column}`);
  }
  dropTimeColumn(db);
  db.prepare("INSERT OR IGNORE INTO meta (key, value) VALUES ('format', ?)").run(String(LOG_FORMAT));
  db.exec('COMMIT');
}

/** Earlier releases had indices that each commit wrote. They go when the tables that replace them are whole. */
function replaceIndices(db: DatabaseSync): void {
  const there = "SELECT 1 FROM sqlite_schema WHERE name IN ('records_actor', 'records_correlation')";
  if (!db.prepare(there).get()) return;
  indexAll(db);
  db.exec('DROP INDEX IF EXISTS records_actor; DROP INDEX IF EXISTS records_correlation');
}

/** Earlier releases had the time of a record as a generated column, which `pragma_table_info` does not list. */
function dropTimeColumn(db: DatabaseSync): void {
  if (!db.prepare("SELECT 1 FROM pragma_table_xinfo('records') WHERE name = 'at'").get()) return;
  try {
    db.exec('ALTER TABLE records DROP COLUMN at');
  } catch {
    // An index or a view that somebody added uses it: it stays, and appends cost as much as before.
  }
}

/**
 * Opens the log for reading, also while a runtime writes it.
 *
 * @throws HF_LOG_MISSING, HF_LOG_FORMAT, HF_LOG_DAMAGED, HF_LOG_FOLDER, HF_LOG_UNREADABLE
 */
export function openForReading(dataDir: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(logFile(dataDir), { readOnly: true });
    db.exec('PRAGMA busy_timeout = 5000');
    db.prepare('SELECT 1 FROM records LIMIT 1').get();
    checkFormat(db, dataDir);
    return db;
  } catch (error) {
    db?.close();
    if (!isReadable(logFile(dataDir), dataDir))
      throw new KernelError('HF_LOG_MISSING', { dir: dataDir }, { cause: error });
    throw unusable(dataDir, error);
  }
}

function checkFormat(db: DatabaseSync, dataDir: string): void {
  const found = db.prepare("SELECT value FROM meta WHERE key = 'format'").get()?.value;
  if (found !== String(LOG_FORMAT)) {
    throw new KernelError('HF_LOG_FORMAT', { dir: dataDir, found: String(found), supported: LOG_FORMAT });
  }
}

/** SQLite's codes for a file that is not a database, or a damaged one. */
const DAMAGED = new Set([11, 26]);

function unusable(dataDir: string, error: unknown): HoldfastError {
  if (isCoded(error)) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const damaged = DAMAGED.has(((error as { errcode?: number }).errcode ?? 0) & 0xff);
  if (damaged) return new KernelError('HF_LOG_DAMAGED', { reason }, { cause: error });
  return new KernelError('HF_LOG_FOLDER', { dir: dataDir, reason }, { cause: error });
}

/** @throws HF_LOG_DAMAGED SQLite cannot make sense of the file */
export function sound<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KernelError('HF_LOG_DAMAGED', { reason }, { cause: error });
  }
}
