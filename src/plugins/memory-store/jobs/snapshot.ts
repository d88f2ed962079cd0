import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { findCollection, openDatabase, POINTS_COLUMNS, tableOf } from '../engine/database.ts';
import { MemoryStoreError } from '../errors.ts';
import { noteChecksum, refuseFullDisk, writeWhole } from './files.ts';
import type { Job } from './jobs.ts';

/** `HFMS`: this SQLite file is a snapshot of ours. */
export const APPLICATION_ID = 0x48464d53;
export const FORMAT = 1;

/** What a snapshot consists of; recovery refuses a file with anything else in it, because SQL of others could run. */
export const SNAPSHOT_TABLES: Readonly<Record<string, string>> = {
  snapshot: '(format INTEGER, collection TEXT, size INTEGER, points INTEGER)',
  points: POINTS_COLUMNS,
};

/** Copies one collection, as it is at one moment, into a database of its own. Requests are answered meanwhile. */
export function snapshot({ database, collection: name, file }: Extract<Job, { kind: 'snapshot' }>): void {
  const db = openDatabase(database);
  try {
    writeWhole(
      file,
      (draft) => {
        refuseFullDisk(dirname(file), bytesOf(db), 'the snapshot');
        db.prepare('ATTACH ? AS out').run(draft);
        // One fsync at the end makes the draft durable; before that nobody reads it.
        db.exec(
          'PRAGMA out.page_size = 8192; PRAGMA out.journal_mode = OFF; PRAGMA out.synchronous = OFF; BEGIN',
        );
        const collection = findCollection(db, name);
        if (!collection)
          throw new MemoryStoreError('HF_MEMORY_STORE_COLLECTION_MISSING', { collection: name });
        for (const [table, columns] of Object.entries(SNAPSHOT_TABLES)) {
          db.exec(`CREATE TABLE out.${table} ${columns}`);
        }
        // For exactly this statement, between two tables of the same columns, SQLite copies records without decoding them.
        const copied = db.prepare(`INSERT INTO out.points SELECT * FROM main.${tableOf(collection)}`).run();
        db.prepare('INSERT INTO out.snapshot VALUES (?, ?, ?, ?)').run(
          FORMAT,
          name,
          collection.size,
          copied.changes,
        );
        db.exec(`PRAGMA out.application_id = ${APPLICATION_ID}; COMMIT; DETACH out`);
      },
      (draft) => noteChecksum(file, draft),
    );
  } finally {
    db.close();
  }
}

/**
 * Copies all collections. `VACUUM INTO` reads within one transaction of one database: the copy is what the store would
 * find after a crash at that moment, the write-ahead log applied.
 */
export function copy({ database, file }: Extract<Job, { kind: 'copy' }>): void {
  const db = openDatabase(database);
  try {
    writeWhole(file, (draft) => {
      refuseFullDisk(dirname(file), bytesOf(db), 'the copy of the volume');
      db.prepare('VACUUM INTO ?').run(draft);
    });
  } finally {
    db.close();
  }
}

/** The size of the whole database, which no copy of a part of it exceeds. */
function bytesOf(db: DatabaseSync): number {
  const pages = Number(db.prepare('PRAGMA page_count').get()?.page_count);
  return pages * Number(db.prepare('PRAGMA page_size').get()?.page_size);
}
