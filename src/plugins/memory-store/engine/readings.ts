import { DatabaseSync } from 'node:sqlite';
import type { DigestedPoint } from '../../../core/contracts/memory-store.ts';
import { pointDigest } from '../../../core/contracts/point-digest.ts';
import { MemoryStoreError } from '../errors.ts';
import { DIGESTS_PAGE, MOST_READINGS } from '../limits.ts';
import { findCollection, tableOf } from './database.ts';
import { floats, type Row, rowOf } from './points.ts';

interface Reading {
  readonly db: DatabaseSync;
  readonly rows: Iterator<Record<string, unknown>>;
}

/**
 * Readings of whole collections, page by page: each sees the collection as it was when the reading began, in a read
 * transaction of a connection of its own, and whatever is written meanwhile waits for none of them.
 */
export class Readings {
  readonly #file: string;
  readonly #open = new Map<number, Reading>();
  #last = 0;

  /** @param file of the database, which exists */
  constructor(file: string) {
    this.#file = file;
  }

  /** @returns its number. @throws HF_MEMORY_STORE_COLLECTION_MISSING, HF_MEMORY_STORE_BUSY too many are open */
  open(name: string): number {
    if (this.#open.size >= MOST_READINGS) {
      const what = `${MOST_READINGS} readings of whole collections are open`;
      throw new MemoryStoreError('HF_MEMORY_STORE_BUSY', { what, seconds: 5 });
    }
    const db = new DatabaseSync(this.#file, { readOnly: true, enableForeignKeyConstraints: false });
    try {
      db.exec('PRAGMA trusted_schema = OFF; BEGIN');
      const collection = findCollection(db, name);
      if (!collection) throw new MemoryStoreError('HF_MEMORY_STORE_COLLECTION_MISSING', { collection: name });
      const rows = db.prepare(`SELECT id, vector, payload FROM ${tableOf(collection)} ORDER BY id`).iterate();
      this.#last += 1;
      this.#open.set(this.#last, { db, rows });
      return this.#last;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** @returns the next points, by id; none after the last */
  page(number: number): DigestedPoint[] {
    const reading = this.#open.get(number);
    if (!reading) throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'the reading has ended' });
    const points: DigestedPoint[] = [];
    let bytes = 0;
    while (points.length < DIGESTS_PAGE.points && bytes < DIGESTS_PAGE.bytes) {
      const next = reading.rows.next();
      if (next.done) break;
      const row = rowOf(next.value);
      bytes += row.payload?.length ?? 0;
      points.push(digested(row));
    }
    return points;
  }

  /** @returns whether it was open */
  close(number: number): boolean {
    this.#open.get(number)?.db.close();
    return this.#open.delete(number);
  }

  closeAll(): void {
    for (const number of [...this.#open.keys()]) this.close(number);
  }
}

/** Takes the digest of what the row holds now. */
function digested({ id, vector, payload }: Row): DigestedPoint {
  const kept: unknown = payload === null ? {} : JSON.parse(payload);
  return { id, digest: pointDigest({ payload: kept, vector: floats(vector) }) };
}
