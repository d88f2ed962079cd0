import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { MemoryStore, Point, PointId } from '../../../core/contracts/memory-store.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { MemoryError } from '../errors.ts';

/** How many points are kept for verification. */
const SEEDS = 16;
const MOST_IDS = 100;
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

export const seedIds = z
  .array(z.union([z.int().min(0), z.uuid()]))
  .min(1)
  .max(MOST_IDS);

/** Which points are seeds: those of `ids`, synthetic points that are written, or some existing points. */
export const seedRequest = z
  .strictObject({ ids: seedIds.optional(), synthetic: z.boolean().default(false) })
  .refine(({ ids, synthetic }) => ids === undefined || !synthetic, 'it takes either `ids` or `synthetic`');
export type SeedRequest = z.output<typeof seedRequest>;

/**
 * Chooses points of the collection as seeds. Nothing is written, unless synthetic ones are requested.
 *
 * @param ids the configured ones, where the request names none
 * @returns their ids
 * @throws HF_MEMORY_SEEDS one of them is not there, or there is none; HF_MEMORY_* as the store answers
 */
export async function chooseSeeds(
  store: MemoryStore,
  collection: string,
  request: SeedRequest,
  ids: readonly PointId[] | undefined,
  signal: AbortSignal,
): Promise<PointId[]> {
  return request.synthetic
    ? writeSeeds(store, collection, signal)
    : existingSeeds(store, collection, request.ids ?? ids, signal);
}

async function existingSeeds(
  store: MemoryStore,
  collection: string,
  ids: readonly PointId[] | undefined,
  signal: AbortSignal,
): Promise<PointId[]> {
  if (!(await store.collection(collection, signal)))
    throw new MemoryError('HF_MEMORY_SEEDS', { reason: `there is no collection ${collection}` });
  const points = ids
    ? await store.points(collection, ids, signal)
    : (await store.scroll(collection, { limit: SEEDS, vectors: false }, signal)).points;
  const found = points.map(({ id }) => id);
  const missing = (ids ?? []).filter((id) => !found.includes(id));
  if (missing.length > 0)
    throw new MemoryError('HF_MEMORY_SEEDS', { reason: `${collection} has no point ${missing.join(', ')}` });
  if (found.length === 0) throw new MemoryError('HF_MEMORY_SEEDS', { reason: `${collection} has no points` });
  return found;
}

/**
 * Puts the synthetic seed points into the collection.
 *
 * @returns their ids
 * @throws HF_MEMORY_SEEDS the collection is not there, or has vectors that no seed can be made for
 */
async function writeSeeds(
  store: MemoryStore,
  collection: string,
  signal: AbortSignal,
): Promise<Point['id'][]> {
  const info = await store.collection(collection, signal);
  if (!info) throw new MemoryError('HF_MEMORY_SEEDS', { reason: `there is no collection ${collection}` });
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
  throw new MemoryError('HF_MEMORY_SEEDS', {
    reason: 'the collection has vectors that no seed is made for',
  });
}

const sizeOf = (value: unknown): number | undefined =>
  isObject(value) && typeof value.size === 'number' && value.size > 0 ? value.size : undefined;
