import type { DatabaseSync } from 'node:sqlite';
import { unindex } from './record-index.ts';
import { insertBegin, type LogKey } from './signing.ts';

/** How many records one transaction deletes, so that the commit behind it waits only some milliseconds. */
const SLICE = 500;

/**
 * Deletes records up to one at which all states have been saved, a slice at a time. From the first slice on the log
 * begins behind that record, whatever is still to be deleted. Its new begin is signed, and chained to the hash of the
 * last record that was deleted.
 *
 * @returns whether there are more to delete
 */
export function pruneSlice(db: DatabaseSync, key: LogKey, to: number): boolean {
  const begin = to + 1;
  const current = db.prepare("SELECT value FROM meta WHERE key = 'begin'").get()?.value;
  if (current !== String(begin)) begins(db, key, begin);
  unindex(db, begin, SLICE);
  db.prepare(
    'DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE seq < ? ORDER BY seq LIMIT ?)',
  ).run(begin, SLICE);
  return db.prepare('SELECT 1 FROM records WHERE seq < ?').get(begin) !== undefined;
}

function begins(db: DatabaseSync, key: LogKey, begin: number): void {
  const last = db.prepare('SELECT hash FROM records WHERE seq = ?').get(begin - 1);
  db.prepare('DELETE FROM links WHERE seq < ?').run(begin);
  insertBegin(db, key.sign('begin', begin, String(last?.hash)));
  db.prepare('DELETE FROM signatures WHERE seq < ?').run(begin);
  for (const table of ['snapshots', 'checkpoints'])
    db.prepare(`DELETE FROM ${table} WHERE seq < ?`).run(begin - 1);
}

/**
 * Deletes bodies so that nobody can read them again: deleted content is overwritten (`secure_delete`), and a note that
 * the body was here stays. Records name bodies by fingerprint only, so the chain does not change.
 */
export function shredBlobs(db: DatabaseSync, keys: readonly string[]): void {
  const note = db.prepare('INSERT OR REPLACE INTO shredded (key, at) VALUES (?, ?)');
  const drop = db.prepare('DELETE FROM blobs WHERE key = ?');
  for (const key of keys) {
    if (drop.run(key).changes > 0) note.run(key, Date.now());
  }
}

/** @returns whether the write-ahead log was emptied; not while somebody reads in it */
export function emptyWal(db: DatabaseSync): boolean {
  return db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0;
}
