import type { MemoryStore, PointId, SnapshotRecord } from '../../../core/contracts/memory-store.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import type { Bounds, Report } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';
import type { ProgressBoard } from '../steps.ts';
import { Differences, sameVector, walk } from './differences.ts';

const BATCH = 100;

export interface CompareOptions {
  readonly live: MemoryStore;
  readonly restored: MemoryStore;
  readonly collection: string;
  /** What was recorded when the snapshot was made. */
  readonly record: SnapshotRecord | undefined;
  /** What the live store held while it was copied. */
  readonly copied: Bounds | undefined;
  /** Points that Holdfast keeps in the collection. */
  readonly seeds: readonly PointId[];
  readonly fingerprint: (content: unknown) => string;
  /** Points whose vectors are compared. */
  readonly sample: number;
  readonly listed: number;
  readonly progress: ProgressBoard;
  readonly signal: AbortSignal;
}

/**
 * Compares a restored collection with what was recorded of it, and with the live store as it is now (B4): exact counts,
 * seeded points whole, every payload, vectors of a sample. Checksums are not used. The memory that it needs does not grow
 * with the collection.
 *
 * @throws HF_MEMORY_*, HF_RESTORE_FAILED the collection is not there
 */
export async function compare(options: CompareOptions): Promise<Report> {
  const { live, restored, collection, progress, signal } = options;
  progress.begin('counting');
  const [liveInfo, info] = await Promise.all([
    live.collection(collection, signal),
    restored.collection(collection, signal),
  ]);
  if (!info)
    throw new RestoreError('HF_RESTORE_FAILED', { reason: `no collection ${collection} was restored` });
  const liveBefore = await live.count(collection, signal);
  const count = await restored.count(collection, signal);
  const seeds = await checkSeeds(options);
  const { differences, compared } = await compareAll(options, Math.max(liveBefore, count));
  const liveCount = await live.count(collection, signal);
  const parameters = [liveInfo?.vectors, info.vectors].map((vectors) => canonicalJson(vectors ?? {}));
  const [ofLive = '', ofRestored = ''] = parameters;
  const facts = {
    expected: expectedOf(options, liveBefore, liveCount),
    restored: { count, approximate: info.pointsCount },
    live: { count: liveCount, approximate: liveInfo?.pointsCount ?? 0 },
    seeds,
    compared,
    differences,
    ...(ofLive !== ofRestored && { vectors: { live: ofLive, restored: ofRestored } }),
  };
  return { ...facts, ...verdictOf(facts) };
}

/** The expected count: by the record, or else the live store during the copy, or else the live store now. */
function expectedOf({ record, copied }: CompareOptions, before: number, after: number): Report['expected'] {
  if (record) return { from: 'record', least: record.count, most: record.count };
  if (copied) return { from: 'copy', ...copied };
  return { from: 'live', least: Math.min(before, after), most: Math.max(before, after) };
}

async function checkSeeds(options: CompareOptions): Promise<Report['seeds']> {
  const { live, restored, collection, record, fingerprint, signal } = options;
  const recorded = new Map(record?.seeds.map((seed) => [seed.id, seed.fingerprint]));
  const ids = record ? [...recorded.keys()] : options.seeds;
  const missing: PointId[] = [];
  const changed: PointId[] = [];
  let checked = 0;
  for (let from = 0; from < ids.length; from += BATCH) {
    const batch = ids.slice(from, from + BATCH);
    const found = new Map(
      (await restored.points(collection, batch, signal)).map((point) => [point.id, point]),
    );
    const lives = record
      ? new Map<PointId, string>(recorded)
      : new Map(
          (await live.points(collection, batch, signal)).map((point) => [
            point.id,
            fingerprint(point.content),
          ]),
        );
    for (const id of batch) {
      const point = found.get(id);
      const expected = lives.get(id);
      // Without a record, a seed that the live store lacks was never planted, or is a matter of its own.
      if (expected === undefined) continue;
      checked += 1;
      if (!point) missing.push(id);
      else if (fingerprint(point.content) !== expected) changed.push(id);
    }
  }
  return { checked, missing, changed };
}

async function compareAll(options: CompareOptions, total: number) {
  const { live, restored, collection, sample, listed, progress, signal } = options;
  const differences = new Differences(live, collection, listed, signal);
  // Evenly over the collection, and the same ones at each drill of the same points.
  const every = sample === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(total / sample));
  const sampled: PointId[] = [];
  let payloads = 0;
  let seen = 0;
  progress.begin('comparing', { done: 0, total, unit: 'points' });
  for await (const pair of walk(live, restored, collection, signal)) {
    if (pair.live && pair.restored) payloads += 1;
    const same = await differences.compare(pair);
    if (same && seen % every === 0 && sampled.length < sample) sampled.push(pair.id);
    seen += 1;
    if (seen % BATCH === 0) progress.at(Math.min(seen, total));
  }
  const vectors = await compareVectors(options, sampled, differences);
  return { differences: await differences.end(), compared: { payloads, vectors } };
}

async function compareVectors(
  { live, restored, collection, progress, signal }: CompareOptions,
  ids: readonly PointId[],
  differences: Differences,
): Promise<number> {
  progress.begin('comparing vectors', { done: 0, total: ids.length, unit: 'points' });
  let compared = 0;
  for (let from = 0; from < ids.length; from += BATCH) {
    const batch = ids.slice(from, from + BATCH);
    const [lives, others] = await Promise.all([
      live.points(collection, batch, signal),
      restored.points(collection, batch, signal),
    ]);
    const now = new Map(lives.map((point) => [point.id, point]));
    for (const point of others) {
      const current = now.get(point.id);
      if (!current) continue;
      compared += 1;
      if (!sameVector(current, point)) differences.changed(point.id);
    }
    progress.at(from + batch.length);
  }
  return compared;
}

type Facts = Omit<Report, 'ok' | 'verdict'>;

const SAYS = {
  record: 'recorded when it was made',
  copy: 'there when it was copied',
  live: 'in the live store',
} as const;

/**
 * Whether the restore is proven. A count that was recorded, or taken during the copy, decides alone, because
 * the live store may have changed since. Without one, the restored collection must equal the live store.
 */
export function verdictOf(facts: Facts): Pick<Report, 'ok' | 'verdict'> {
  const faults = [...faultsOf(facts)];
  const { restored, expected, seeds } = facts;
  if (faults.length > 0) return { ok: false, verdict: `${faults.join('; ')}.` };
  const points = `${restored.count} points, as ${SAYS[expected.from]}`;
  const planted = seeds.checked > 0 ? `, and ${seeds.checked} seeded memories unchanged` : '';
  return { ok: true, verdict: `${points}${planted}.` };
}

function* faultsOf({ expected, restored, seeds, differences, vectors }: Facts): Generator<string> {
  const { least, most, from } = expected;
  const wanted = least === most ? String(least) : `${least} to ${most}`;
  if (restored.count < least || restored.count > most) {
    yield `${restored.count} points instead of ${wanted}, as ${SAYS[from]}`;
  }
  if (seeds.missing.length > 0) yield `seeded memories are missing: ${seeds.missing.join(', ')}`;
  if (seeds.changed.length > 0) yield `seeded memories are not what they were: ${seeds.changed.join(', ')}`;
  if (vectors) yield `its vectors are ${vectors.restored} instead of ${vectors.live}`;
  if (from !== 'live') return;
  const { onlyLive, onlyRestored, changed } = differences;
  const total = onlyLive.total + onlyRestored.total + changed.total;
  if (total > 0) yield `${total} points differ from the live store, and nothing recorded what it held`;
}
