import type { DatabaseSync } from 'node:sqlite';

/**
 * Takes bodies away so that nobody can read them again: deleted content is overwritten (`secure_delete`), and that a
 * body was here stays known. Records name bodies by fingerprint alone, so the chain is as it was.
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
