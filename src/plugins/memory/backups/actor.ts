/** The actor that makes backups of one kind: its topics, schedules, output and metrics. */
import { Cron } from 'croner';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import type { ActorSnapshot } from '../../../core/kernel/actors/transition.ts';
import { memoryBackups } from '../../../machines/memory/backups.ts';
import type { BackupSettings, BackupsContext } from '../../../machines/memory/backups-rules.ts';
import type { MemoryOptions } from '../options.ts';
import { describeBackupsRecord } from '../words.ts';

/** Also the key of the actor: each kind has its own. */
export type BackupKind = BackupSettings['kind'];

export const backupsActor = defineActor({
  type: 'memory.backups',
  machine: memoryBackups,
  version: 1,
  describe: describeBackupsRecord,
});

/** Of several hosts on one store elsewhere, one makes, counts and deletes its backups, and proves them in drills. */
export const BACKUPS = { singleton: 'memory' } as const;

const HOUR_MS = 3_600_000;
const RETRY_MS = 600_000;
/** Size of a snapshot of the store that the documents describe. */
const USUAL_SNAPSHOT_BYTES = 225_000;
/** Every hour, because the timers of a machine stop while it sleeps. */
const CHECK_CRON = '23 * * * *';
/**
 * A snapshot that somebody else made is recorded soon after it was made, because writes between the two are unknown.
 */
const LOOK_CRON = '*/5 * * * *';
/** The first check waits until the surfaces of the runtime have started. */
const FIRST_CHECK_MS = 30_000;

const kind = z.enum(['snapshot', 'volume']);

export const backupRequested = defineTopic(
  'memory.backup_requested',
  z.object({
    kind,
    at: z.number(),
    by: z.enum(['schedule', 'command']),
    request: z.string().optional(),
  }),
  'The schedule or an operator requests a backup of the memory store.',
);
export const pruneRequested = defineTopic(
  'memory.prune_requested',
  z.object({ kind, at: z.number(), request: z.string().optional() }),
  'An operator requests that old backups of the memory store are deleted.',
);
export const collectionSeeded = defineTopic(
  'memory.seeded',
  z.object({ ids: z.array(z.union([z.number(), z.string()])) }),
  'The points by which restores are proven are in the collection.',
);
export const backupsChecked = defineTopic(
  'memory.backups_checked',
  z.object({ kind, at: z.number(), due: z.number(), dueBefore: z.number().exactOptional() }),
  'The hourly check whether a backup of the memory store was missed or is stale.',
);
export const deploymentChecked = defineTopic(
  'memory.deployment_checked',
  z.object({ findings: z.array(z.string().max(1_000)).max(20) }),
  "The memory store's deployment and the backups of its volume were checked in the cluster.",
);
const noFields: z.ZodType<Record<string, never>> = z.object({});
const snapshotDue = defineTopic('memory.snapshot_due', noFields, 'A snapshot is due by its schedule.');
const volumeCopyDue = defineTopic(
  'memory.volume_copy_due',
  noFields,
  'A copy of the volume is due by its schedule.',
);
const lookDue = defineTopic('memory.look_due', noFields, 'The look for snapshots of others is due.');
const checkDue = defineTopic('memory.check_due', noFields, 'The hourly check of the backups is due.');

/** The machine's settings for one kind. */
export function settingsOf(kind: BackupKind, options: MemoryOptions): BackupSettings {
  const { snapshots, volumeCopies, staleHours, missed, url } = options;
  const common = { kind, staleMs: staleHours * HOUR_MS, missed, retryMs: RETRY_MS } as const;
  const { usualBytes } = kind === 'snapshot' ? snapshots : volumeCopies;
  const usual = usualBytes ?? (kind === 'snapshot' && url !== undefined ? USUAL_SNAPSHOT_BYTES : undefined);
  return {
    ...common,
    ...(usual !== undefined && { usualBytes: usual }),
    ...(kind === 'snapshot' ? { keepNewest: snapshots.keep } : { keepDays: volumeCopies.keepDays }),
  };
}

/** When the schedule of a kind last required a run, epoch milliseconds; 0 if never. */
export function lastDue(kind: BackupKind, options: MemoryOptions, now: number): number {
  return lastTimes(kind, options, now)[0] ?? 0;
}

/** The last two times that the schedule of a kind required a run, newest first. */
function lastTimes(kind: BackupKind, options: MemoryOptions, now: number): readonly number[] {
  const pattern = kind === 'snapshot' ? options.snapshots.cron : options.volumeCopies.cron;
  const cron = new Cron(pattern, { paused: true, timezone: 'UTC' });
  return cron.previousRuns(2, new Date(now)).map((run) => run.getTime());
}

/** State of the actor of a kind; undefined before its first event. */
export function backupState(
  { actors }: Services,
  kind: BackupKind,
): ActorSnapshot<typeof memoryBackups> | undefined {
  return actors.get(backupsActor, kind);
}

/** Registers the actors with their routes and schedules. */
export function registerBackupActors<S>(context: PluginContext<S>, options: MemoryOptions): void {
  context.actor(
    { ...backupsActor, input: (key) => settingsOf(key === 'volume' ? 'volume' : 'snapshot', options) },
    BACKUPS,
  );
  context.route(backupRequested, backupsActor, ({ payload: { kind: key, ...rest } }) => [
    { key, event: { type: 'REQUESTED', ...rest } },
  ]);
  context.route(pruneRequested, backupsActor, ({ payload: { kind: key, ...rest } }) => [
    { key, event: { type: 'PRUNE_REQUESTED', ...rest } },
  ]);
  context.route(backupsChecked, backupsActor, ({ payload: { kind: key, ...rest } }) => [
    { key, event: { type: 'CHECK', ...rest } },
  ]);
  context.route(collectionSeeded, backupsActor, ({ payload }) => [
    { key: 'snapshot', event: { type: 'SEEDED', ids: payload.ids } },
  ]);
  context.route(deploymentChecked, backupsActor, ({ payload }) => [
    { key: 'snapshot', event: { type: 'DEPLOYMENT_CHECKED', ...payload } },
  ]);
  context.schedule(options.snapshots.cron, snapshotDue, BACKUPS);
  context.schedule(options.volumeCopies.cron, volumeCopyDue, BACKUPS);
  context.schedule(CHECK_CRON, checkDue, BACKUPS);
  context.schedule(LOOK_CRON, lookDue, BACKUPS);
}

/**
 * Requests backups and checks at their times.
 *
 * @param look records the snapshots that somebody else made
 * @returns ends the wait for the first check
 */
export function startSchedules(
  { actors, bus, clock }: Services,
  options: MemoryOptions,
  kinds: readonly BackupKind[],
  look: () => void,
): () => void {
  const request = (due: BackupKind) => {
    if (kinds.includes(due)) bus.publish(backupRequested, { kind: due, at: clock.now(), by: 'schedule' });
  };
  const check = () => {
    const at = clock.now();
    for (const each of kinds) {
      const [due = 0, dueBefore] = lastTimes(each, options, at);
      bus.publish(backupsChecked, { kind: each, at, due, ...(dueBefore !== undefined && { dueBefore }) });
    }
  };
  bus.stream(snapshotDue, 'memory').subscribe(() => request('snapshot'));
  bus.stream(volumeCopyDue, 'memory').subscribe(() => request('volume'));
  bus.stream(checkDue, 'memory').subscribe(check);
  bus.stream(lookDue, 'memory').subscribe(look);
  return clock.after(FIRST_CHECK_MS, () => {
    if (!actors.actsHere(backupsActor)) return;
    look();
    check();
  });
}

/** Gauges for dashboards, read from the actors at each scrape. */
export function registerBackupMetrics(services: Services, kinds: readonly BackupKind[]): void {
  const gauge = (name: string, help: string, read: (context: BackupsContext) => number | undefined) =>
    services.metrics.gauge(name, {
      help,
      labels: ['kind'],
      collect: (metric) => {
        for (const each of kinds) {
          const state = backupState(services, each);
          const value = state && read(state.context);
          if (value !== undefined) metric.set({ kind: each }, value);
        }
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
