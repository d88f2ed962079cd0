import type { Backup, SnapshotJobContext } from './backups-shapes.ts';

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
