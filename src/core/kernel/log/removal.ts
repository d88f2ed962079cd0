import type { DatabaseSync } from 'node:sqlite';
import type { LogKey } from './signing.ts';

/** So many records go in one transaction: a commit behind it waits some milliseconds. */
const SLICE = 2_000;

/**
 * Takes records away up to one at which all states have been saved. With the first slice the log begins behind it,
 * whatever is still to be deleted; that it does is signed, and chained to the hash of the last record that went.
 *
 * @returns whether there are more to delete
 */
export function pruneSlice(db: DatabaseSync, key: LogKey, to: number): boolean {
  const begin = to + 1;
  const known = db.prepare("SELECT value FROM meta WHERE key = 'begin'").get()?.value;
  if (known !== String(begin)) begins(db, key, begin);
  db.prepare(
    'DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE seq < ? ORDER BY seq LIMIT ?)',
  ).run(begin, SLICE);
  return db.prepare('SELECT 1 FROM records WHERE seq < ?').get(begin) !== undefined;
}

function begins(db: DatabaseSync, key: LogKey, begin: number): void {
  const last = db.prepare('SELECT hash FROM records WHERE seq = ?').get(begin - 1);
  const { seq, hash, signature } = key.sign('begin', begin, last?.hash as string);
  db.prepare('DELETE FROM links WHERE seq < ?').run(begin);
  db.prepare('INSERT OR REPLACE INTO links (seq, hash, key, signature) VALUES (?, ?, ?, ?)').run(
    seq,
    hash,
    key.text,
    signature,
  );
  db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('begin', ?)").run(String(begin));
  db.prepare('DELETE FROM signatures WHERE seq < ?').run(begin);
  for (const table of ['snapshots', 'checkpoints'])
    db.prepare(`DELETE FROM ${table} WHERE seq < ?`).run(begin - 1);
}

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
