import { randomInt, randomUUID } from 'node:crypto';
import { contentOf, type MemoryStore, type PointId } from '../../../core/contracts/memory-store.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import type { Fingerprinted } from '../../../machines/memory/backups-shapes.ts';

/** Half of them the first by id, half from random places. */
const SAMPLES = 32;

/** What a collection holds at one moment, as far as it is compared later. */
export interface Facts {
  readonly count: number;
  readonly seeds: readonly Fingerprinted[];
  readonly samples: readonly Fingerprinted[];
}

/** Ids of some points of a collection. */
export async function sampleIds(
  store: MemoryStore,
  collection: string,
  seeds: readonly PointId[],
  signal: AbortSignal,
): Promise<PointId[]> {
  const { points } = await store.scroll(collection, { limit: SAMPLES / 2, vectors: false }, signal);
  const ids = new Set(points.map(({ id }) => id));
  const count = await store.count(collection, signal);
  for (let taken = 0; taken < SAMPLES / 2 && ids.size < count; taken += 1) {
    // Ids are numbers from somewhere near 1, or UUIDs that are spread evenly: a place of each kind in turn.
    const from = taken % 2 === 0 ? randomInt(Math.max(1, count)) : randomUUID();
    const page = await store.scroll(collection, { from, limit: 1, vectors: false }, signal);
    for (const { id } of page.points) ids.add(id);
  }
  return [...ids].filter((id) => !seeds.includes(id));
}

/** Reads the exact count and the points that are compared. */
export async function factsOf(
  store: MemoryStore,
  collection: string,
  of: { readonly seeds: readonly PointId[]; readonly samples: readonly PointId[] },
  vault: Vault,
  signal: AbortSignal,
): Promise<Facts> {
  const read = async (ids: readonly PointId[]) => {
    const points = ids.length === 0 ? [] : await store.points(collection, ids, signal);
    return points.map((point) => ({ id: point.id, fingerprint: vault.fingerprint(contentOf(point)) }));
  };
  return {
    count: await store.count(collection, signal),
    seeds: await read(of.seeds),
    samples: await read(of.samples),
  };
}

/** Of two readings, what was the same in both: whatever the moment between them that a snapshot shows, it has these. */
export function unchanged(
  before: readonly Fingerprinted[],
  after: readonly Fingerprinted[],
): Fingerprinted[] {
  return before.filter(({ id, fingerprint }) =>
    after.some((one) => one.id === id && one.fingerprint === fingerprint),
  );
}
