import type { PointId, SnapshotRecord } from '../../../core/contracts/memory-store.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Likeness, Report } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';
import type { Expectation } from './expectation.ts';
import { verdictOf } from './verdict.ts';
import { type Walked, type WalkOptions, walk } from './walk.ts';

const NOTHING = { total: 0, ids: [] };

interface CompareOptions extends Omit<WalkOptions, 'seeds'> {
  /** What was recorded; without it the live store is the only witness. */
  readonly expectation: Expectation | undefined;
  /** False for a copy of the volume that was made for this drill. */
  readonly hasFile: boolean;
  /** Reads the file that was restored as it is now. */
  readonly digest?: (() => Promise<{ readonly sha256: string }>) | undefined;
  readonly record?: SnapshotRecord | undefined;
  /** Seeds of the collection. */
  readonly seeds: readonly PointId[];
}

/**
 * Compares a restored collection with what was recorded of it (B4): the bytes of the file, exact counts, and every point
 * with its id, payload and vectors. Apart from that it says how the live store differs by now. Checksums that a store
 * gives are not used. The memory that this needs does not grow with the collection.
 *
 * @throws HF_MEMORY_*, HF_RESTORE_FAILED the collection is not there
 */
export async function compare(options: CompareOptions): Promise<Report> {
  const { live, restored, collection, expectation, progress, signal } = options;
  progress.begin('counting');
  const [liveInfo, info] = await Promise.all([
    live.collection(collection, signal),
    restored.collection(collection, signal),
  ]);
  if (!info)
    throw new RestoreError('HF_RESTORE_FAILED', { reason: `no collection ${collection} was restored` });
  const before = liveInfo ? await live.count(collection, signal) : 0;
  const count = await restored.count(collection, signal);
  const file = await likenessOfFile(options);
  progress.begin('comparing', { done: 0, total: Math.max(before, count), unit: 'points' });
  const { restored: listed, ...walked } = await walkAll(options, liveInfo !== undefined);
  const after = liveInfo ? await live.count(collection, signal) : 0;
  const vectors = {
    expected: expectation?.content.vectors ?? canonicalJson(liveInfo?.vectors ?? {}),
    restored: canonicalJson(info.vectors ?? {}),
  };
  const facts = {
    ...walked,
    expected: expectedOf(expectation, before, after),
    restored: { count, approximate: info.pointsCount },
    live: { count: after, approximate: liveInfo?.pointsCount ?? 0 },
    ...(file && { file }),
    ...(vectors.expected !== vectors.restored && { vectors }),
  };
  return { ...facts, ...verdictOf(facts, listed) };
}

function expectedOf(expectation: Expectation | undefined, before: number, after: number): Report['expected'] {
  const { by = 'live', at, content } = expectation ?? {};
  const [one, other] = content ? [content.count, content.countAfter ?? content.count] : [before, after];
  return { by, ...(at !== undefined && { at }), least: Math.min(one, other), most: Math.max(one, other) };
}

/** Whether the file has the bytes that were recorded; undefined for what has none. */
async function likenessOfFile({
  hasFile,
  digest,
  record,
  progress,
  signal,
}: CompareOptions): Promise<Likeness | undefined> {
  if (!hasFile) return undefined;
  if (!record || !digest) return { state: 'unknown', reason: 'nothing was recorded of it' };
  const { sha256, unread } = record;
  if (sha256 === undefined) {
    return {
      state: 'unknown',
      reason: `it could not be read when it was recorded (${unread ?? 'no reason is known'})`,
    };
  }
  progress.begin('reading its file');
  try {
    const now = await digest();
    if (now.sha256 === sha256) return { state: 'same' };
    return { state: 'different', reason: `its sha256 is ${now.sha256}, and ${sha256} was recorded` };
  } catch (error) {
    signal.throwIfAborted();
    return {
      state: 'unknown',
      reason: `it cannot be read now (${isCoded(error) ? error.what : String(error)})`,
    };
  }
}

type WalkedPoints = Omit<Walked, 'points' | 'digest'> & Pick<Report, 'points'>;

/** Walks over all points, with the list of the record where that can be used. */
async function walkAll(options: CompareOptions, hasLive: boolean): Promise<WalkedPoints> {
  const { expectation, record, seeds: ids } = options;
  const prints = new Map(record?.seeds.map(({ id, fingerprint }) => [id, fingerprint]));
  const seeds = new Map(ids.map((id) => [id, prints.get(id)]));
  const walked = (by?: Expectation) => walk({ ...options, seeds }, by?.points(), hasLive);
  if (!expectation) {
    const { digest: _, ...found } = await walked();
    return found;
  }
  try {
    const { digest, ...found } = await walked(expectation);
    return { ...found, points: { ...found.points, digest: likenessOfDigest(digest, expectation) } };
  } catch (error) {
    if (!isCoded(error, 'HF_MEMORY_RECORD')) throw error;
    const { digest, ...found } = await walked();
    return withoutList(found, likenessOfDigest(digest, expectation), error.what);
  }
}

/** Points that were written meanwhile leave no single digest; then each has to be one of its two states. */
function likenessOfDigest(found: string, { content: { digest, written } }: Expectation): Likeness {
  if (digest === undefined) {
    return { state: 'unknown', reason: `${written} points were written while it was recorded` };
  }
  if (digest === found) return { state: 'same' };
  return { state: 'different', reason: `it is ${found}, and ${digest} was recorded` };
}

/** Without the list only the digest says whether the points are right; how they differ from the live store is drift, or damage. */
function withoutList(
  { points, ...found }: Omit<Walked, 'digest'>,
  digest: Likeness,
  unlisted: string,
): WalkedPoints {
  const { missing: added, unexpected: deleted, changed } = points;
  const same = digest.state === 'same' ? found.restored : 0;
  return {
    ...found,
    points: {
      same,
      missing: NOTHING,
      unexpected: NOTHING,
      changed: NOTHING,
      unsettled: NOTHING,
      digest,
      unlisted,
    },
    drift: { added, deleted, changed },
  };
}
