import type { MemoryStore, Point, PointId } from '../../../core/contracts/memory-store.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import type { PointList, Report } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';

type Kind = keyof Report['differences'];

const BATCH = 100;

/**
 * What two collections differ in, counted whole and listed up to a bound. Before a difference counts, the point is read
 * from the live store once more: if it changed meanwhile, it says nothing about the restore.
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

/** Small enough that a page of large payloads stays within what the adapter reads. */
const PAGE = 256;

/** An id, and what each of two stores holds under it; vectors are not read. */
export interface Pair {
  readonly id: PointId;
  readonly live?: Point;
  readonly restored?: Point;
}

/** Two collections side by side, by id, a page of each in memory at a time. */
export async function* walk(
  live: MemoryStore,
  restored: MemoryStore,
  collection: string,
  signal: AbortSignal,
): AsyncGenerator<Pair> {
  const [left, right] = [pointsOf(live, collection, signal), pointsOf(restored, collection, signal)];
  let [one, other] = await Promise.all([left.next(), right.next()]);
  while (!one.done || !other.done) {
    const order = one.done ? 1 : other.done ? -1 : compareIds(one.value.id, other.value.id);
    if (order < 0 && !one.done) yield { id: one.value.id, live: one.value };
    else if (order > 0 && !other.done) yield { id: other.value.id, restored: other.value };
    else if (!one.done && !other.done) yield { id: one.value.id, live: one.value, restored: other.value };
    if (order <= 0) one = await left.next();
    if (order >= 0) other = await right.next();
  }
}

async function* pointsOf(store: MemoryStore, collection: string, signal: AbortSignal): AsyncGenerator<Point> {
  let from: PointId | undefined;
  let last: PointId | undefined;
  do {
    const { points, next } = await store.scroll(collection, { from, limit: PAGE, vectors: false }, signal);
    for (const point of points) {
      if (last !== undefined && compareIds(last, point.id) >= 0) {
        const reason = `${store.url} lists its points out of order, at ${point.id}`;
        throw new RestoreError('HF_RESTORE_FAILED', { reason });
      }
      last = point.id;
      yield point;
    }
    from = next;
  } while (from !== undefined);
}

/** As stores order them: numbers, then UUIDs. */
function compareIds(a: PointId, b: PointId): number {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}
