import type { DatabaseSync } from 'node:sqlite';

/**
 * The index of records by actor and by correlation. SQLite's own indices would be written with every commit, two pages
 * more for each; these tables get many records at once. What is newer than `indexed` is found by reading those records.
 */
export const INDEX_TABLES = `
  CREATE TABLE IF NOT EXISTS records_by_actor (
    actor TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (actor, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS records_by_correlation (
    correlation TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (correlation, seq)
  ) STRICT, WITHOUT ROWID;
`;

/** The columns of a record that the index finds it by. */
export type IndexedColumn = 'actor' | 'correlation';
const COLUMNS: readonly IndexedColumn[] = ['actor', 'correlation'];

/** So many records are indexed at once; a search reads at most as many one by one. */
export const INDEX_EVERY = 2_000;

export function indexTable(column: IndexedColumn): string {
  return `records_by_${column}`;
}

/** @returns the newest record that is in the index; 0 when none is */
export function indexedUpTo(db: DatabaseSync): number {
  return Number(db.prepare("SELECT value FROM meta WHERE key = 'indexed'").get()?.value ?? 0);
}

/**
 * Indexes some of the records that are not in the index yet, in order.
 *
 * @returns the newest record that is in the index now
 */
export function indexSome(db: DatabaseSync, after: number): number {
  const range = 'FROM records WHERE seq > ? ORDER BY seq LIMIT ?';
  const last = db.prepare(`SELECT max(seq) AS seq FROM (SELECT seq ${range})`).get(after, INDEX_EVERY)?.seq;
  if (typeof last !== 'number') return after;
  for (const column of COLUMNS) {
    db.prepare(
      `INSERT OR IGNORE INTO ${indexTable(column)} (${column}, seq)
       SELECT ${column}, seq FROM records WHERE seq > ? AND seq <= ? ORDER BY ${column}, seq`,
    ).run(after, last);
  }
  db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('indexed', ?)").run(String(last));
  return last;
}

/** Indexes every record that is there: after an import, and in a log that an earlier release wrote. */
export function indexAll(db: DatabaseSync): void {
  const within = db.isTransaction;
  for (let done = indexedUpTo(db); ; ) {
    // What was indexed before a kill stays: the next start goes on from there.
    if (!within) db.exec('BEGIN IMMEDIATE');
    const next = indexSome(db, done);
    if (!within) db.exec('COMMIT');
    if (next === done) return;
    done = next;
  }
}

/** Forgets the oldest records before one, at most so many: those that are about to be deleted. */
export function unindex(db: DatabaseSync, before: number, limit: number): void {
  for (const column of COLUMNS) {
    db.prepare(
      `DELETE FROM ${indexTable(column)} WHERE (${column}, seq) IN (
         SELECT ${column}, seq FROM records WHERE seq < ? ORDER BY seq LIMIT ?
       )`,
    ).run(before, limit);
  }
}

/**
 * @param begin the oldest record that counts
 * @returns a record that the index should have and has not, and by which column; undefined when it is whole
 */
export function missingInIndex(
  db: DatabaseSync,
  begin: number,
): { seq: number; column: IndexedColumn } | undefined {
  for (const column of COLUMNS) {
    const missing = db.prepare(
      `SELECT seq FROM records AS r WHERE seq BETWEEN ? AND ? AND NOT EXISTS (
         SELECT 1 FROM ${indexTable(column)} AS i WHERE i.${column} = r.${column} AND i.seq = r.seq
       ) LIMIT 1`,
    );
    const seq = missing.get(begin, indexedUpTo(db))?.seq;
    if (typeof seq === 'number') return { seq, column };
  }
  return undefined;
}
