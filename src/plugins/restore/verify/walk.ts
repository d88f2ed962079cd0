import type { MemoryStore, Point, PointId } from '../../../core/contracts/memory-store.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

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
        throw new HoldfastError('HF_RESTORE_FAILED', { reason });
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
