import type { Backup, ListedBackup, SnapshotJobContext, SnapshotJobInput } from './backups-shapes.ts';

/** So much more was stored, while the snapshots stayed as small as they were. */
const GROWN = 1.25;

/**
 * What is wrong with backups that were all made well, as sentences for a person.
 *
 * @param version that the live store says it has, where it was asked
 */
export function findingsOf(
  context: Pick<SnapshotJobContext, 'good' | 'listed' | 'keepNewest' | 'vanished' | 'kind'>,
  version?: string,
): string[] {
  const { good, listed, keepNewest, vanished } = context;
  const [newest] = good;
  const oldest = good.at(-1);
  const isOnly = good.length === 1 && keepNewest !== undefined && keepNewest > 1 && listed >= keepNewest;
  return [
    ...(vanished.length > 0
      ? [`somebody else deleted ${vanished.join(', ')}, known to be good: another retention is at work`]
      : []),
    ...(isOnly
      ? [`of ${listed} that are kept only ${newest?.name} is known to be good: the retention eats the others`]
      : []),
    ...(newest && oldest && staysSmall(newest, oldest)
      ? [
          `they do not grow: ${oldest.count} points in ${oldest.size} bytes, then ${newest.count} in ${newest.size}`,
        ]
      : []),
    ...(newest?.version !== undefined && version !== undefined && release(newest.version) !== release(version)
      ? [`${newest.name} is of version ${newest.version}, and the store has ${version}: take a new one`]
      : []),
  ];
}

const staysSmall = (newest: Backup, oldest: Backup): boolean =>
  newest.count !== undefined &&
  oldest.count !== undefined &&
  newest.count > oldest.count * GROWN &&
  newest.size <= oldest.size;

/** A store reads snapshots of its own release, e.g. `1.19`. */
const release = (version: string): string => version.split('.', 2).join('.');

const DAY_MS = 86_400_000;

/** Of two in one second, the one with the greater number is the newer. */
export const newestFirst = (a: ListedBackup, b: ListedBackup): number =>
  b.at - a.at || (a.name < b.name ? 1 : -1);

/**
 * What is to be deleted: what is beyond the newest so many, or older than so many days. The newest is never in it, nor
 * the newest that is known to be good: a row of bad ones must not push it out.
 *
 * @param listed only files of our own shape
 * @param at now, epoch milliseconds
 */
export function doomedOf(
  listed: readonly ListedBackup[],
  good: readonly Backup[],
  { keepNewest, keepDays }: Pick<SnapshotJobInput, 'keepNewest' | 'keepDays'>,
  at: number,
): string[] {
  const sorted = [...listed].sort(newestFirst);
  const lastGood = sorted.find(({ name }) => good.some((known) => known.name === name))?.name;
  return sorted
    .filter(({ name, at: madeAt }, place) => {
      if (place === 0 || name === lastGood) return false;
      const isBeyond = keepNewest !== undefined && place >= keepNewest;
      return isBeyond || (keepDays !== undefined && madeAt < at - keepDays * DAY_MS);
    })
    .map(({ name }) => name);
}
