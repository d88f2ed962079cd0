import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import {
  findCollection,
  inTransaction,
  newPlace,
  openDatabase,
  putCollection,
  tableOf,
} from '../engine/database.ts';
import { MemoryStoreError } from '../errors.ts';
import { LARGEST_VECTOR, MOST_COLLECTIONS, MOST_POINTS } from '../limits.ts';
import { refuseFullDisk, sha256Of } from './files.ts';
import type { Job } from './jobs.ts';
import { APPLICATION_ID, FORMAT, SNAPSHOT_TABLES } from './snapshot.ts';
import { malformedPoint } from './snapshot-points.ts';

/** Rows of one transaction. Requests that write wait for one transaction at most. */
const BATCH = 2_000;
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';

/**
 * Puts a snapshot in the place of a collection: checked first, then copied into a table of its own, which takes the
 * name in one commit. Until then, and after any failure, the collection is as it was.
 *
 * @throws HF_MEMORY_STORE_SNAPSHOT_INVALID the file is cut short, damaged or no snapshot; HF_MEMORY_STORE_REQUEST it does not fit
 */
export function recover(job: Extract<Job, { kind: 'recover' }>): void {
  refuseCutShort(job.file);
  if (job.checksum !== undefined && sha256Of(job.file) !== job.checksum.toLowerCase()) {
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason: 'Snapshot checksum mismatch' });
  }
  const { size } = examine(job.file);
  refuseFullDisk(dirname(job.database), statSync(job.file).size, 'the recovered collection');
  const db = openDatabase(job.database);
  try {
    refuseOther(db, job.collection, size);
    db.prepare('ATTACH ? AS src').run(`${pathToFileURL(job.file).href}?mode=ro&immutable=1`);
    const place = inTransaction(db, () => newPlace(db));
    try {
      copyRows(db, tableOf({ place }));
      inTransaction(db, () => {
        refuseOther(db, job.collection, size);
        putCollection(db, { name: job.collection, place, size });
      });
    } catch (error) {
      db.exec(`DROP TABLE IF EXISTS ${tableOf({ place })}`);
      throw error;
    }
  } finally {
    db.close();
  }
}

/** SQLite opens a file that lost its end, so its length is compared with the header. */
function refuseCutShort(file: string): void {
  const header = Buffer.alloc(HEADER_BYTES);
  const descriptor = openSync(file, 'r');
  try {
    const read = readSync(descriptor, header, 0, HEADER_BYTES, 0);
    if (read < HEADER_BYTES || header.toString('latin1', 0, 16) !== MAGIC)
      invalid('it is no snapshot of this store');
  } finally {
    closeSync(descriptor);
  }
  const page = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const bytes = page * header.readUInt32BE(28);
  const found = statSync(file).size;
  if (bytes !== found) invalid(`it has ${found} bytes of ${bytes}`);
}

/** Reads a file that may come from anywhere: nothing in it is executed, and everything that is used is checked. */
function examine(file: string): { size: number } {
  const db = new DatabaseSync(`${pathToFileURL(file).href}?mode=ro&immutable=1`, {
    readOnly: true,
    enableForeignKeyConstraints: false,
  });
  try {
    db.exec('PRAGMA trusted_schema = OFF');
    const first = (sql: string) => db.prepare(sql).get() ?? {};
    if (first('PRAGMA application_id').application_id !== APPLICATION_ID)
      invalid('it is no snapshot of this store');
    const schema = db.prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").all();
    const isKnown = Object.entries(SNAPSHOT_TABLES).every(([name, columns]) =>
      schema.some((entry) => entry.name === name && entry.sql === `CREATE TABLE ${name} ${columns}`),
    );
    if (!isKnown || schema.length !== Object.keys(SNAPSHOT_TABLES).length)
      invalid('it holds other tables than a snapshot');
    const { format, size, points } = first('SELECT format, size, points FROM snapshot');
    if (format !== FORMAT) invalid(`its format ${format} is unknown`);
    if (typeof size !== 'number' || size < 1 || size > LARGEST_VECTOR)
      invalid(`its vectors have ${size} numbers`);
    const { quick_check } = first('PRAGMA quick_check(1)');
    if (quick_check !== 'ok') invalid(`it is damaged: ${String(quick_check).slice(0, 200)}`);
    const { n } = first('SELECT count(*) AS n FROM points');
    if (n !== points) invalid(`it holds ${n} points of ${points}`);
    if (Number(n) > MOST_POINTS) invalid(`it holds more than ${MOST_POINTS} points`);
    const malformed = malformedPoint(db, size);
    if (malformed !== undefined) invalid(malformed);
    return { size };
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    return invalid(`it is damaged: ${(error as Error).message}`);
  } finally {
    db.close();
  }
}

function refuseOther(db: DatabaseSync, name: string, size: number): void {
  const existing = findCollection(db, name);
  if (existing && existing.size !== size) {
    const reason = `the snapshot is not compatible: collection vector size ${existing.size}, snapshot vector size ${size}`;
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
  }
  if (!existing && Number(db.prepare('SELECT count(*) AS n FROM collections').get()?.n) >= MOST_COLLECTIONS) {
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', {
      reason: `there are ${MOST_COLLECTIONS} collections already`,
    });
  }
}

function copyRows(db: DatabaseSync, table: string): void {
  const last = Number(db.prepare('SELECT max(rowid) AS last FROM src.points').get()?.last ?? 0);
  const copy = db.prepare(
    `INSERT INTO main.${table} SELECT id, vector, payload FROM src.points WHERE rowid > ? AND rowid <= ? ORDER BY rowid`,
  );
  // A batch need not be durable: the catalogue does not list the table before the last commit, which is durable.
  db.exec('PRAGMA main.synchronous = NORMAL');
  for (let from = 0; from < last; from += BATCH) inTransaction(db, () => copy.run(from, from + BATCH));
  db.exec('PRAGMA main.synchronous = FULL');
}

function invalid(reason: string): never {
  throw new MemoryStoreError('HF_MEMORY_STORE_SNAPSHOT_INVALID', { reason });
}
