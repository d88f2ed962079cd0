import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../core/kernel/clock.ts';

/** Items of one source that are recorded one by one, before they have to wait. */
const BURST = 50;
/** How long it takes until one more may be recorded, and how long items wait for each other, milliseconds. */
const EVERY_MS = 1_000;
const SOURCES_KEPT = 10_000;

interface Source<Item> {
  /** How many items of its burst are left. */
  left: number;
  at: number;
  waiting?: { readonly items: Item[]; readonly flush: () => void };
}

/**
 * Bounds the records that one source makes by repeating itself: beyond a burst its requests wait for up to a second and
 * become one record, with their number.
 */
export class BurstLimiter<Item> {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #sources = new LRUCache<string, Source<Item>>({ max: SOURCES_KEPT });

  /** @param most that wait together; when there are more, they are recorded sooner */
  constructor(clock: Clock, most: number = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Counts one item against the burst of its source. @returns false when the burst is used up */
  spend(name: string): boolean {
    const source = this.#refilled(name) ?? { left: BURST, at: performance.now() };
    this.#sources.set(name, source);
    if (source.left < 1) return false;
    source.left -= 1;
    return true;
  }

  /** Whether an item of the source was counted lately. */
  knows(name: string): boolean {
    return this.#sources.has(name);
  }

  /** Ends the count: the source no longer repeats itself. */
  forget(name: string): void {
    this.#sources.delete(name);
  }

  /** Waits with others of its source. @param record makes one record of them all; that of the first counts */
  join(name: string, item: Item, record: (items: readonly Item[]) => void): void {
    const source = this.#sources.get(name) ?? { left: 0, at: performance.now() };
    this.#sources.set(name, source);
    source.waiting ??= this.#collect(source, record);
    const { items, flush } = source.waiting;
    items.push(item);
    if (items.length >= this.#most) flush();
  }

  #collect(source: Source<Item>, record: (items: readonly Item[]) => void): Source<Item>['waiting'] & object {
    const items: Item[] = [];
    const flush = () => {
      disarm();
      delete source.waiting; // what comes from now on waits for the next record
      record(items);
    };
    const disarm = this.#clock.after(EVERY_MS, flush);
    return { items, flush };
  }

  #refilled(name: string): Source<Item> | undefined {
    const source = this.#sources.get(name);
    if (!source) return undefined;
    const now = performance.now();
    source.left = Math.min(BURST, source.left + (now - source.at) / EVERY_MS);
    source.at = now;
    return source;
  }
}
