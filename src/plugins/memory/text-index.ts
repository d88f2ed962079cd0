import type { MemoryStore, PointId } from '../../core/contracts/memory-store.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/kernel/json.ts';
import { MemoryError } from './errors.ts';
import { FullText, type TextMatch } from './full-text.ts';

/** What others wrote is found after so long at the latest, milliseconds. */
const FRESH_MS = 60_000;
const PAGE = 256;
const MOST_POINTS = 200_000;
/** Characters of one point that are indexed. */
const LONGEST_TEXT = 20_000;

/**
 * Full text of the payloads of a collection. It is in memory alone and made at the first search: the store is the
 * truth. Own writes are taken up at once, and those of others when the store is read again.
 */
export class TextIndex {
  readonly #store: MemoryStore;
  readonly #collection: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #searchMs: number | undefined;
  #table: FullText | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param searchMs longest search, milliseconds */
  constructor(store: MemoryStore, collection: string, clock: Pick<Clock, 'monotonic'>, searchMs?: number) {
    this.#store = store;
    this.#collection = collection;
    this.#clock = clock;
    this.#searchMs = searchMs;
  }

  /**
   * @param query words, all of which a point must have; each may end with `*`
   * @throws HF_MEMORY_TEXT the collection is too large; HF_MEMORY_SEARCH it takes too long; HF_MEMORY_*
   */
  async search(query: string, limit: number, signal: AbortSignal): Promise<readonly TextMatch[]> {
    if (!this.#table || this.#table.hasEnded || this.#clock.monotonic() - this.#readAt > FRESH_MS) {
      this.#reading ??= this.#read(signal).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    return this.#table?.search(query, limit) ?? [];
  }

  /** Takes up a point that was just written. */
  put(id: PointId, payload: unknown): void {
    this.#table?.put(id, textOf(payload)).catch(() => {}); // an index that has ended is made anew
  }

  /** Takes out a point that was just removed. */
  remove(id: PointId): void {
    this.#table?.remove(id).catch(() => {});
  }

  close(): void {
    this.#table?.close();
    this.#table = undefined;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const began = this.#clock.monotonic();
    const fresh = new FullText(this.#searchMs);
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
        await fresh.putAll(page.points.map(({ id, payload }) => [id, textOf(payload)] as const));
        from = page.next;
      } while (from !== undefined);
    } catch (error) {
      fresh.close();
      throw error;
    }
    void this.#table?.finish();
    this.#table = fresh;
    this.#readAt = began;
  }
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
