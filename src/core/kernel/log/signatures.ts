import type { DatabaseSync } from 'node:sqlite';
import type { Signature } from './signing.ts';

const COLUMNS = 'seq, hash, key, signature';

/** Adds the signature of a record. */
export function insertSignature(db: DatabaseSync, { seq, hash, key, signature }: Signature): void {
  db.prepare(`INSERT OR REPLACE INTO signatures (${COLUMNS}) VALUES (?, ?, ?, ?)`).run(
    seq,
    hash,
    key,
    signature,
  );
}

/** The newest signature that a key made. */
export function newestSignature(db: DatabaseSync, key: string): Signature | undefined {
  const newest = `SELECT ${COLUMNS} FROM signatures WHERE key = ? ORDER BY seq DESC LIMIT 1`;
  return db.prepare(newest).get(key) as unknown as Signature | undefined;
}

/** Signatures of records from one seq to another, inclusive, in order. */
export function signaturesBetween(db: DatabaseSync, from: number, to: number): Signature[] {
  const between = `SELECT ${COLUMNS} FROM signatures WHERE seq BETWEEN ? AND ? ORDER BY seq, key`;
  return db.prepare(between).all(from, to) as unknown as Signature[];
}
