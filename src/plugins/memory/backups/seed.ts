import { createHash } from 'node:crypto';
import type { MemoryStore, Point } from '../../../core/contracts/memory-store.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { MemoryError } from '../errors.ts';

/** How many points are kept for verification. */
const SEEDS = 16;
const NAMESPACE = 'holdfast.backup.seed';
/** Numbers in a vector of a collection that is made here; an existing one keeps its own size. */
export const SEED_VECTOR_SIZE = 384;

/**
 * The seed points. They are always the same, so seeding twice changes nothing and repairs a point that was changed.
 *
 * @param vectorOf the vector, or vectors by name, of a point by its number
 */
function seedPoints(vectorOf: (index: number) => unknown): Point[] {
  return Array.from({ length: SEEDS }, (_, index) => {
    const hex = createHash('sha256').update(`${NAMESPACE}.${index}`).digest('hex');
    // A UUID of version 8 is derived by a rule of one's own, so it cannot meet an id of somebody else.
    const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
    const text = `Seed ${index + 1} of ${SEEDS}: kept by Holdfast so that restores can be proven.`;
    return { id, vector: vectorOf(index), payload: { holdfast: { seed: index + 1 }, text } };
  });
}

const vectorOf = (index: number, size: number): number[] =>
  Array.from({ length: size }, (_, place) => Math.fround(Math.sin((index + 1) * (place + 1))));

/**
 * Puts the seed points into the collection.
 *
 * @returns their ids
 * @throws HF_MEMORY_BACKUP the collection is not there, or has vectors that no seed can be made for
 */
export async function seed(
  store: MemoryStore,
  collection: string,
  signal: AbortSignal,
): Promise<Point['id'][]> {
  const info = await store.collection(collection, signal);
  if (!info) throw new MemoryError('HF_MEMORY_BACKUP', { reason: `there is no collection ${collection}` });
  const sizes = vectorSizes(info.vectors);
  const points = seedPoints((index) =>
    typeof sizes === 'number'
      ? vectorOf(index, sizes)
      : Object.fromEntries(sizes.map(({ name, size }) => [name, vectorOf(index, size)])),
  );
  await store.upsert(collection, points, signal);
  return points.map(({ id }) => id);
}

/** The size of a point's only vector, or of each vector by its name. */
function vectorSizes(vectors: unknown): number | { readonly name: string; readonly size: number }[] {
  const own = sizeOf(vectors);
  if (own !== undefined) return own;
  const named = isObject(vectors)
    ? Object.entries(vectors).flatMap(([name, value]) => {
        const size = sizeOf(value);
        return size === undefined ? [] : [{ name, size }];
      })
    : [];
  if (named.length > 0) return named;
  throw new MemoryError('HF_MEMORY_BACKUP', {
    reason: 'the collection has vectors that no seed is made for',
  });
}

const sizeOf = (value: unknown): number | undefined =>
  isObject(value) && typeof value.size === 'number' && value.size > 0 ? value.size : undefined;
