/** Backups of the store's volume that the cluster's backup operator made: which are good, and what is recorded of them. */
import { z } from 'zod';
import type { KubernetesApi } from '../../../core/contracts/kubernetes.ts';
import type { Backup } from '../../../machines/memory/backups-rules.ts';
import type { MemoryOptions } from '../options.ts';
import type { Recorded } from './content.ts';
import { recordOf } from './records.ts';

const backupShape = z.object({
  metadata: z.object({ name: z.string() }),
  status: z
    .object({
      phase: z.string().optional(),
      completionTimestamp: z.string().nullish(),
      errors: z.number().default(0),
      warnings: z.number().default(0),
      formatVersion: z.string().optional(),
    })
    .optional(),
});

export interface GoodBackup {
  readonly name: string;
  /** When it was complete, epoch milliseconds. */
  readonly at: number;
  /** Version of the backup's format; drills read 1.x. */
  readonly format: string | undefined;
}

/**
 * The backups of the volume's schedule that completed without errors or warnings, newest first.
 *
 * @returns `whole` is false when there are more than could be read
 * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED, HF_KUBERNETES_KIND
 */
export async function goodBackups(
  cluster: KubernetesApi,
  { backupNamespace, backupSchedule }: MemoryOptions['deployment'],
  signal: AbortSignal,
): Promise<{ readonly good: readonly GoodBackup[]; readonly read: number; readonly whole: boolean }> {
  const { objects, whole } = await cluster.list(
    { apiVersion: 'velero.io/v1', kind: 'Backup' },
    { namespace: backupNamespace, labels: { 'velero.io/schedule-name': backupSchedule } },
    signal,
  );
  return { good: goodAmong(objects), read: objects.length, whole };
}

/** Pure; see `goodBackups`. */
export function goodAmong(objects: readonly unknown[]): GoodBackup[] {
  const good = objects.flatMap((object): GoodBackup[] => {
    const { metadata, status } = backupShape.safeParse(object).data ?? {};
    const isGood = status?.phase === 'Completed' && status.errors === 0 && status.warnings === 0;
    const at = Date.parse(status?.completionTimestamp ?? '');
    if (!isGood || !metadata || Number.isNaN(at)) return [];
    return [{ name: metadata.name, at, format: status.formatVersion }];
  });
  return good.toSorted((a, b) => b.at - a.at);
}

/** @param recorded with the time of the look, epoch milliseconds */
export function recordOfCluster({ name, at }: GoodBackup, recorded: Recorded<number>): Backup {
  const unread = 'the operator keeps it in an object store';
  // How many bytes the operator keeps is no size of a file.
  return { name, at, size: 0, seenAt: recorded.result, unread, ...recordOf(recorded) };
}
