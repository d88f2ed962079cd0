import type { Software } from '../../../machines/cluster/singleton.ts';
import { ClusterError } from '../errors.ts';

/**
 * Whether this host may go on with what another one did, or it itself before it was set back: not by older machines, which do not
 * know the states and would decide otherwise. Newer ones migrate the states, as at a start after an update.
 *
 * @param by what the work was done with last; undefined where no record says so
 * @throws HF_CLUSTER_OUTDATED a machine here is older, or is missing because the release is
 */
export function refuseOutdated(singleton: string, own: Software, by: Software | undefined): void {
  if (!by) return;
  for (const [type, theirs] of Object.entries(by.machines)) {
    const ours = own.machines[type];
    const isOutdated = ours === undefined ? isEarlier(own.release, by.release) : ours < theirs;
    if (!isOutdated) continue;
    const versions = { version: ours ?? 'none', theirs, release: own.release, theirRelease: by.release };
    throw new ClusterError('HF_CLUSTER_OUTDATED', { singleton, type, ...versions });
  }
}

/** By the numbers alone: of two candidates for one release, none is earlier. */
function isEarlier(one: string, other: string): boolean {
  return numbersOf(one).localeCompare(numbersOf(other), 'en', { numeric: true }) < 0;
}

function numbersOf(release: string): string {
  return release.split('-')[0] ?? '';
}
