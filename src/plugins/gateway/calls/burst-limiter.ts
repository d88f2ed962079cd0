import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../core/kernel/clock.ts';

/** Of one source that are records of their own at once, and how often one more is. */
const BURST = 50;
const EVERY_MS = 1_000;
const SOURCES_KEPT = 10_000;

interface Source<Item> {
  left: number;
  at: number;
  waiting?: { readonly items: Item[]; readonly done: Promise<void>; readonly flush: () => void };
}

/**
 * Bounds the records that one source makes with the same thing over and over: beyond a burst its requests wait for up
 * to a second and are one record, with their number.
 */
export class Gathering<Item> {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #sources = new LRUCache<string, Source<Item>>({ max: SOURCES_KEPT });

  /** @param most that wait together; more of them are recorded sooner */
  constructor(clock: Clock, most: number = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Takes one of the burst. @returns false when there is none left */
  spend(name: string): boolean {
    const source = this.#refilled(name) ?? { left: BURST, at: performance.now() };
    this.#sources.set(name, source);
    if (source.left < 1) return false;
    source.left -= 1;
    return true;
  }

  /** Whether something was taken of its burst lately. */
  knows(name: string): boolean {
    return this.#sources.has(name);
  }

  /** It does something else now. */
  forget(name: string): void {
    this.#sources.delete(name);
  }

  /**
   * Waits with others of its source.
   *
   * @param record makes one record of them all
   * @returns when it is made; rejects for all of them with what `record` throws
   */
  join(name: string, item: Item, record: (items: readonly Item[]) => Promise<void>): Promise<void> {
    const source = this.#sources.get(name) ?? { left: 0, at: performance.now() };
    this.#sources.set(name, source);
    source.waiting ??= this.#open(source, record);
    const { items, done, flush } = source.waiting;
    items.push(item);
    if (items.length >= this.#most) flush();
    return done;
  }

  #open(
    source: Source<Item>,
    record: (items: readonly Item[]) => Promise<void>,
  ): NonNullable<Source<Item>['waiting']> {
    const items: Item[] = [];
    const due = Promise.withResolvers<void>();
    const flush = () => {
      disarm();
      delete source.waiting; // what comes from now on waits for the next record
      due.resolve();
    };
    const disarm = this.#clock.after(EVERY_MS, flush);
    return { items, done: due.promise.then(() => record(items)), flush };
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
