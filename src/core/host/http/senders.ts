import { LRUCache } from 'lru-cache';
import type { Uid } from './peer.ts';

/** Requests whose records are yet to come; a write is recorded within moments of its request. */
const MOST = 10_000;

/** Which user of this machine sent each write, by the correlation id of its request, for the records that it leads to. */
export class Senders {
  readonly #uids = new LRUCache<string, Uid>({ max: MOST });

  /** Notes who sent a request. */
  note(correlation: string, uid: Uid): void {
    this.#uids.set(correlation, uid);
  }

  /** @returns undefined where no process of this machine sent it, or nobody asked */
  of(correlation: string): Uid | undefined {
    return this.#uids.get(correlation);
  }
}
