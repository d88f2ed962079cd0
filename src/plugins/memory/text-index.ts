import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { MemoryStore, PointId } from '../../core/contracts/memory-store.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/kernel/json.ts';
import { MemoryError } from './errors.ts';

/** What others wrote is found after so long at the latest, milliseconds. */
const FRESH_MS = 60_000;
const PAGE = 256;
const MOST_POINTS = 200_000;
/** Characters of one point that are indexed. */
const LONGEST_TEXT = 20_000;

/** A point that a search found, with its rank: the smaller, the better. */
export interface TextMatch {
  readonly id: PointId;
  readonly rank: number;
}

/**
 * Full text of the payloads of a collection, in SQLite's FTS5. It is in memory alone and made at the first search: the
 * store is the truth. Own writes are taken up at once, and those of others when the store is read again.
 */
export class TextIndex {
  readonly #store: MemoryStore;
  readonly #collection: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #table: FullText | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(store: MemoryStore, collection: string, clock: Pick<Clock, 'monotonic'>) {
    this.#store = store;
    this.#collection = collection;
    this.#clock = clock;
  }

  /**
   * @param query words, all of which a point must have; each may end with `*`
   * @throws HF_MEMORY_TEXT the collection is too large; HF_MEMORY_*
   */
  async search(query: string, limit: number, signal: AbortSignal): Promise<readonly TextMatch[]> {
    if (!this.#table || this.#clock.monotonic() - this.#readAt > FRESH_MS) {
      this.#reading ??= this.#read(signal).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    return this.#table?.search(expressionOf(query), limit) ?? [];
  }

  /** Takes up a point that was just written. */
  put(id: PointId, payload: unknown): void {
    this.#table?.put(id, textOf(payload));
  }

  /** Takes out a point that was just removed. */
  remove(id: PointId): void {
    this.#table?.remove(id);
  }

  close(): void {
    this.#table?.close();
    this.#table = undefined;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const began = this.#clock.monotonic();
    const fresh = new FullText();
    let from: PointId | undefined;
    let points = 0;
    try {
      do {
        const page = await this.#store.scroll(
          this.#collection,
          { from, limit: PAGE, vectors: false },
          signal,
        );
        points += page.points.length;
        if (points > MOST_POINTS)
          throw new MemoryError('HF_MEMORY_TEXT', { collection: this.#collection, most: MOST_POINTS });
        fresh.putAll(page.points.map(({ id, payload }) => [id, textOf(payload)] as const));
        from = page.next;
      } while (from !== undefined);
    } catch (error) {
      fresh.close();
      throw error;
    }
    this.#table?.close();
    this.#table = fresh;
    this.#readAt = began;
  }
}

/** The rows: ids as JSON, for a number and its digits are two ids. */
class FullText {
  readonly #db = new DatabaseSync(':memory:');
  readonly #insert: StatementSync;
  readonly #delete: StatementSync;
  readonly #search: StatementSync;

  constructor() {
    this.#db.exec("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text, tokenize = 'unicode61')");
    this.#insert = this.#db.prepare('INSERT INTO texts (id, text) VALUES (?, ?)');
    this.#delete = this.#db.prepare('DELETE FROM texts WHERE id = ?');
    this.#search = this.#db.prepare('SELECT id, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?');
  }

  putAll(points: readonly (readonly [id: PointId, text: string])[]): void {
    this.#db.exec('BEGIN');
    for (const [id, text] of points) this.#insert.run(JSON.stringify(id), text);
    this.#db.exec('COMMIT');
  }

  put(id: PointId, text: string): void {
    this.remove(id);
    this.putAll([[id, text]]);
  }

  remove(id: PointId): void {
    this.#delete.run(JSON.stringify(id));
  }

  search(expression: string, limit: number): TextMatch[] {
    if (expression === '') return [];
    return this.#search
      .all(expression, limit)
      .map(({ id, rank }) => ({ id: JSON.parse(String(id)) as PointId, rank: Number(rank) }));
  }

  close(): void {
    this.#db.close();
  }
}

/** Words as FTS5 reads them; nothing that a caller types is an operator, but for a `*` at a word's end. */
function expressionOf(query: string): string {
  const words = query.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return words
    .map((word) => {
      const isPrefix = word.endsWith('*');
      return `"${word.replaceAll('"', '""').replace(/\*+$/, '')}"${isPrefix ? '*' : ''}`;
    })
    .join(' ');
}

/** Every text of a payload, however deep. */
function textOf(payload: unknown): string {
  const texts: string[] = [];
  let length = 0;
  const collect = (value: unknown): void => {
    if (length > LONGEST_TEXT) return;
    if (typeof value === 'string') {
      texts.push(value);
      length += value.length;
    } else if (Array.isArray(value)) for (const item of value) collect(item);
    else if (isObject(value)) for (const item of Object.values(value)) collect(item);
  };
  collect(payload);
  return texts.join('\n').slice(0, LONGEST_TEXT);
}
