/** Looks at the newest good backup of each kind, for doctor: whether it is still there, with the bytes that were recorded. */
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Backup, ListedBackup } from '../../../machines/memory/backups-rules.ts';
import type { BackupKind } from './actor.ts';

/** Sentences for a person. A type and not an interface, because only types count as JSON for the compiler. */
export type Inspection = {
  /** What was looked at and is as recorded. */
  readonly seen: readonly string[];
  /** What is not as recorded. */
  readonly faults: readonly string[];
  /** What could not be looked at. */
  readonly unseen: readonly string[];
};

/** What is looked at of one kind. */
export interface Inspected {
  readonly kind: BackupKind;
  readonly newest: Backup | undefined;
  readonly list: () => Promise<readonly ListedBackup[]>;
  readonly digest: (name: string) => Promise<{ readonly sha256: string }>;
}

export async function inspectBackups(kinds: readonly Inspected[]): Promise<Inspection> {
  const all = await Promise.all(kinds.map(inspectNewest));
  return {
    seen: all.flatMap(({ seen = [] }) => seen),
    faults: all.flatMap(({ faults = [] }) => faults),
    unseen: all.flatMap(({ unseen = [] }) => unseen),
  };
}

async function inspectNewest({ kind, newest, list, digest }: Inspected): Promise<Partial<Inspection>> {
  if (!newest) return { unseen: [`no good ${kind} was made yet`] };
  const { name, sha256, unread } = newest;
  try {
    if (!(await list()).some((one) => one.name === name)) return { faults: [`${name} is gone`] };
    if (sha256 === undefined)
      return { unseen: [`the file of ${name}: ${unread ?? 'its bytes were not recorded'}`] };
    const now = await digest(name);
    if (now.sha256 !== sha256) return { faults: [`the file of ${name} has other bytes than were recorded`] };
    return { seen: [`${name} is there with the bytes that were recorded`] };
  } catch (error) {
    const reason = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
    return { unseen: [`${name}: ${reason.replace(/\.$/, '')}`] };
  }
}
