import type { MemoryStore, Point, PointId } from '../../../core/contracts/memory-store.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import type { PointList, Report } from '../../../machines/restore/drill-shapes.ts';
import type { Pair } from './walk.ts';

type Kind = keyof Report['differences'];

const BATCH = 100;

/**
 * What two collections differ in, counted whole and listed up to a bound. Before a difference counts, the live store is
 * asked once more: a point that is another one by now was being written, and says nothing of the restore.
 */
export class Differences {
  readonly #live: MemoryStore;
  readonly #collection: string;
  readonly #listed: number;
  readonly #signal: AbortSignal;
  #waiting: Pair[] = [];
  readonly #found: Record<Kind, { total: number; ids: PointId[] }> = {
    onlyLive: { total: 0, ids: [] },
    onlyRestored: { total: 0, ids: [] },
    changed: { total: 0, ids: [] },
    moving: { total: 0, ids: [] },
  };

  constructor(live: MemoryStore, collection: string, listed: number, signal: AbortSignal) {
    this.#live = live;
    this.#collection = collection;
    this.#listed = listed;
    this.#signal = signal;
  }

  /** @returns whether the payloads are the same */
  async compare(pair: Pair): Promise<boolean> {
    if (pair.live && pair.restored && samePayload(pair.live, pair.restored)) return true;
    this.#waiting.push(pair);
    if (this.#waiting.length >= BATCH) await this.#settle();
    return false;
  }

  /** Counts points whose vectors differ though their payloads do not. */
  changed(id: PointId): void {
    this.#count('changed', id);
  }

  async end(): Promise<Readonly<Record<Kind, PointList>>> {
    await this.#settle();
    return this.#found;
  }

  async #settle(): Promise<void> {
    const pairs = this.#waiting;
    this.#waiting = [];
    if (pairs.length === 0) return;
    const ids = pairs.map(({ id }) => id);
    const again = await this.#live.points(this.#collection, ids, this.#signal);
    const now = new Map(again.map((point) => [point.id, point]));
    for (const { id, live, restored } of pairs) {
      const current = now.get(id);
      const moved =
        live && current ? !samePayload(live, current) : (live === undefined) !== (current === undefined);
      if (moved) this.#count('moving', id);
      else
        this.#count(
          live === undefined ? 'onlyRestored' : restored === undefined ? 'onlyLive' : 'changed',
          id,
        );
    }
  }

  #count(kind: Kind, id: PointId): void {
    const list = this.#found[kind];
    list.total += 1;
    if (list.ids.length < this.#listed) list.ids.push(id);
  }
}

function samePayload(one: Point, other: Point): boolean {
  return canonicalJson(one.payload ?? {}) === canonicalJson(other.payload ?? {});
}

export function sameVector(one: Point, other: Point): boolean {
  return canonicalJson(one.vector ?? []) === canonicalJson(other.vector ?? []);
}
