import type { Backup, ListedBackup, SnapshotJobInput } from './backups-shapes.ts';

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
