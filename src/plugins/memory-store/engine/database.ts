import { DatabaseSync } from 'node:sqlite';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { MemoryStoreError } from '../errors.ts';

/** Layout of the tables; a file of a later layout is refused. */
const LAYOUT = 1;
const BUSY_MS = 30_000;
const SQLITE_FULL = 13;

/** One collection: `place` numbers its table, and a recovered collection gets a new one. */
export interface Collection {
  readonly name: string;
  readonly place: number;
  /** Numbers in a vector. */
  readonly size: number;
}

export const tableOf = ({ place }: Pick<Collection, 'place'>): string => `points_${place}`;

/** Integers sort before texts in SQLite, which is the order of point ids; the column has no type, because it holds both. */
export const POINTS_COLUMNS = '(id PRIMARY KEY, vector BLOB NOT NULL, payload TEXT)';

/**
 * Opens the one file that holds all collections. With one file, one read transaction sees all of them at the same
 * moment, so that a copy of the volume is consistent.
 *
 * @throws HF_MEMORY_STORE_FAILED a later version wrote it
 */
export function openDatabase(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_MS, enableForeignKeyConstraints: false });
  db.exec(`
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 8388608;
    PRAGMA trusted_schema = OFF;
  `);
  const layout = Number(db.prepare('PRAGMA user_version').get()?.user_version);
  if (layout > LAYOUT) {
    db.close();
    throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', {
      reason: `a later version of Holdfast wrote ${file}`,
    });
  }
  if (layout === 0) {
    db.exec(`
      BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS instance (peer INTEGER NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS collections (
        name TEXT PRIMARY KEY, place INTEGER NOT NULL UNIQUE, size INTEGER NOT NULL
      ) STRICT;
      PRAGMA user_version = ${LAYOUT};
      COMMIT;
    `);
  }
  return db;
}

export function findCollection(db: DatabaseSync, name: string): Collection | undefined {
  const row = db.prepare('SELECT name, place, size FROM collections WHERE name = ?').get(name);
  return row && { name: String(row.name), place: Number(row.place), size: Number(row.size) };
}

/** Makes the table of a new collection, which the catalogue does not list yet. @returns its place */
export function newPlace(db: DatabaseSync): number {
  const taken = db
    .prepare(
      `SELECT max(CAST(substr(name, 8) AS INTEGER)) AS last FROM sqlite_schema WHERE name GLOB 'points_*'`,
    )
    .get();
  const place = Number(taken?.last ?? 0) + 1;
  db.exec(`CREATE TABLE ${tableOf({ place })} ${POINTS_COLUMNS}`);
  return place;
}

/** Lists a table in the catalogue under a name, and drops the table that had that name. */
export function putCollection(db: DatabaseSync, { name, place, size }: Collection): void {
  const old = findCollection(db, name);
  db.prepare('INSERT OR REPLACE INTO collections (name, place, size) VALUES (?, ?, ?)').run(
    name,
    place,
    size,
  );
  if (old) db.exec(`DROP TABLE ${tableOf(old)}`);
}

/** Drops the tables that the catalogue does not list: they come from an interrupted recovery. */
export function dropOrphans(db: DatabaseSync): void {
  const orphans = db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'points_*'
       AND name NOT IN (SELECT 'points_' || place FROM collections)`,
    )
    .all();
  for (const { name } of orphans) db.exec(`DROP TABLE "${String(name)}"`);
}

export function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** A failure as an error with a code: coded errors unchanged, a full disk as 507, others by their text. */
export function codedFailure(error: unknown, what: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const { code, errcode, message } = error as { code?: string; errcode?: number; message?: string };
  if (errcode === SQLITE_FULL || code === 'ENOSPC' || code === 'EDQUOT') {
    return new MemoryStoreError('HF_MEMORY_STORE_FULL', { what }, { cause: error });
  }
  return new MemoryStoreError(
    'HF_MEMORY_STORE_FAILED',
    { reason: message ?? String(error) },
    { cause: error },
  );
}
