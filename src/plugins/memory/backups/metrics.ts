import type { Services } from '../../../core/host/plugin/definition.ts';
import { backupState, type Kind } from './actors.ts';

/** What a dashboard asks of backups, read from the actors at each scrape. */
export function registerBackupMetrics(services: Services, kinds: () => readonly Kind[]): void {
  const each = (
    read: (context: NonNullable<ReturnType<typeof backupState>>['context']) => number | undefined,
  ) =>
    kinds().flatMap((kind) => {
      const known = backupState(services, kind);
      const value = known && read(known.context);
      return value === undefined ? [] : [{ kind, value }];
    });
  const gauge = (name: string, help: string, read: Parameters<typeof each>[0]) =>
    services.metrics.gauge(name, {
      help,
      labels: ['kind'],
      collect: (metric) => {
        for (const { kind, value } of each(read)) metric.set({ kind }, value);
      },
    });
  gauge(
    'memory_backup_last_good_timestamp_seconds',
    'When the newest good backup was made, Unix time.',
    ({ good }) => (good[0] === undefined ? undefined : good[0].at / 1_000),
  );
  gauge('memory_backup_size_bytes', 'Size of the newest good backup.', ({ good }) => good[0]?.size);
  gauge(
    'memory_backup_points',
    'Exact count of points when the newest good snapshot was made.',
    ({ good }) => good[0]?.count,
  );
  gauge('memory_backup_stale', '1 while no backup has been good for too long.', ({ isStale }) =>
    Number(isStale),
  );
  gauge('memory_backup_failing', '1 while the last run failed.', ({ fault }) => Number(fault !== undefined));
}
