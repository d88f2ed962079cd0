/** Makes snapshots and records what a restore of each must reproduce: every point, and the bytes of the file. */
import type { MemoryInstance, MemoryStores, PointId } from '../../../core/contracts/memory-store.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Backup } from '../../../machines/memory/backups-rules.ts';
import type { ContentLists, Recorded } from './content.ts';
import { snapshotTime, type VolumeCopies } from './files.ts';

/** What backups are made with. */
export interface BackupSources {
  readonly stores: MemoryStores;
  /** The embedded store, where that is the live one. */
  readonly instance?: MemoryInstance | undefined;
  readonly copies?: VolumeCopies | undefined;
  readonly lists: ContentLists;
  readonly seeds: () => readonly PointId[];
}

/** @param now epoch milliseconds, for a name that tells no time */
export async function makeSnapshot(
  { stores, seeds, lists }: BackupSources,
  now: number,
  signal: AbortSignal,
): Promise<Backup> {
  const { live, collection } = stores;
  const { version } = await live.about(signal);
  const recorded = await lists.recordDuring(() => live.createSnapshot(collection, signal), seeds(), signal);
  const { name, size } = recorded.result;
  const file = await readFile(stores, name, signal);
  return { name, at: snapshotTime(collection, name) ?? now, size, ...recordOf(recorded), ...file, version };
}

/** Copies the embedded store's volume. @param now epoch milliseconds, which the name contains */
export async function makeVolumeCopy(
  { stores, seeds, lists }: BackupSources,
  copies: VolumeCopies,
  now: number,
  signal: AbortSignal,
): Promise<Backup> {
  const { live, collection } = stores;
  const { version } = await live.about(signal);
  const make = () => copies.make(now);
  // Where the collection is not there yet, a copy holds others, and nothing of it can be recorded.
  const recorded = (await live.collection(collection, signal))
    ? await lists.recordDuring(make, seeds(), signal)
    : undefined;
  const made = recorded?.result ?? (await make());
  const { sha256 } = await copies.digest(made.name, signal);
  return { ...made, ...(recorded && recordOf(recorded)), sha256, version };
}

/**
 * Records the snapshots that somebody else made, with the file and the collection as they are now.
 *
 * @param isRecorded by the snapshot's name
 * @param now gives epoch milliseconds
 */
export async function recordSnapshots(
  { stores, seeds, lists, instance }: BackupSources,
  isRecorded: (name: string) => boolean,
  now: () => number,
  signal: AbortSignal,
): Promise<readonly Backup[]> {
  const { live, collection } = stores;
  if (instance && !instance.isUsed()) return [];
  if (!(await live.collection(collection, signal))) return [];
  const unrecorded = (await live.snapshots(collection, signal)).filter(
    ({ name, size }) => size > 0 && snapshotTime(collection, name) !== undefined && !isRecorded(name),
  );
  if (unrecorded.length === 0) return [];
  const readFiles = async (): Promise<Backup[]> => {
    const found: Backup[] = [];
    for (const { name, size, createdAt } of unrecorded) {
      const seenAt = now();
      const at = timeOf(createdAt) ?? snapshotTime(collection, name) ?? seenAt;
      found.push({ name, at, size, seenAt, ...(await readFile(stores, name, signal)) });
    }
    return found;
  };
  const recorded = await lists.recordDuring(readFiles, seeds(), signal);
  return recorded.result.map((backup) => ({ ...backup, ...recordOf(recorded) }));
}

/** The part of a backup's record that is its content. */
export function recordOf({
  content: { count, countAfter, digest, ...rest },
  seeds,
}: Pick<Recorded<unknown>, 'content' | 'seeds'>): Pick<Backup, 'count' | 'countAfter' | 'content' | 'seeds'> {
  const content = { ...(digest !== undefined && { digest }), ...rest };
  return { count, ...(countAfter !== undefined && { countAfter }), content, seeds };
}

/** Some stores cannot serve a snapshot that is in an object store. This is recorded, and is no failure. */
async function readFile(
  { live, collection }: MemoryStores,
  name: string,
  signal: AbortSignal,
): Promise<Pick<Backup, 'sha256' | 'unread'>> {
  try {
    return { sha256: (await live.snapshotDigest(collection, name, signal)).sha256 };
  } catch (error) {
    signal.throwIfAborted();
    return { unread: isCoded(error) ? error.what : String(error) };
  }
}

/** Stores give times in UTC, most of them without a time zone. */
function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(at) ? undefined : at;
}
