import { Cron } from 'croner';
import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../../core/kernel/actors/route.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import { snapshotJob } from '../../../machines/memory/backups.ts';
import type { SnapshotJobContext, SnapshotJobInput } from '../../../machines/memory/backups-shapes.ts';
import type { QdrantOptions } from '../options.ts';

/** One actor for each kind of backup, which is its key. */
const BACKUP_ACTOR = 'memory.backups';
export type Kind = SnapshotJobInput['kind'];

const HOUR_MS = 3_600_000;
const RETRY_MS = 600_000;
/** Of a snapshot of the store that the documents describe. */
const USUAL_BYTES = 225_000;
/** Every hour: a machine that slept had no timers meanwhile. */
const WATCH_CRON = '23 * * * *';
/** After a start, once the surfaces listen and what is more urgent is done. */
const FIRST_WATCH_MS = 30_000;

const kind = z.enum(['snapshot', 'volume']);
const asked = z.object({
  kind,
  at: z.number(),
  by: z.enum(['schedule', 'command']),
  request: z.string().optional(),
});
const pruneAsked = z.object({ kind, at: z.number(), request: z.string().optional() });
const watched = z.object({ kind, at: z.number(), due: z.number() });
const seeded = z.object({ ids: z.array(z.union([z.number(), z.string()])) });
const nothing = z.object({});

export const backupAsked: Topic<z.infer<typeof asked>> = defineTopic(
  'memory.backup_asked',
  asked,
  'The schedule or an operator wants a backup of the memory store.',
);
export const pruneRequested: Topic<z.infer<typeof pruneAsked>> = defineTopic(
  'memory.prune_asked',
  pruneAsked,
  'An operator wants old backups of the memory store deleted.',
);
export const seedsKept: Topic<z.infer<typeof seeded>> = defineTopic(
  'memory.seeded',
  seeded,
  'The points by which restores are proven are in the collection.',
);
export const backupsWatched: Topic<z.infer<typeof watched>> = defineTopic(
  'memory.backups_watched',
  watched,
  'It is looked at whether a backup of the memory store was missed, or is stale.',
);
export const deploymentLookedAt: Topic<{ findings: string[] }> = defineTopic(
  'memory.deployment_looked_at',
  z.object({ findings: z.array(z.string().max(1_000)).max(20) }),
  "The memory store's deployment and the backups of its volume were looked at in the cluster.",
);
const tick = (name: string, summary: string) =>
  defineTopic(name, nothing as z.ZodType<Record<string, never>>, summary);
const snapshotDue = tick('memory.snapshot_due', 'The time of a snapshot has come.');
const volumeCopyDue = tick('memory.volume_copy_due', 'The time of a volume copy has come.');
const watchDue = tick('memory.watch_due', 'The time to look at the backups has come.');

/** The machine's settings of one kind. */
export function settingsOf(kind: Kind, options: QdrantOptions): SnapshotJobInput {
  const { snapshots, volumeCopies, staleHours, missed, url } = options;
  const common = { kind, staleMs: staleHours * HOUR_MS, missed, retryMs: RETRY_MS } as const;
  const { usualBytes } = kind === 'snapshot' ? snapshots : volumeCopies;
  const usual = usualBytes ?? (kind === 'snapshot' && url !== undefined ? USUAL_BYTES : undefined);
  return {
    ...common,
    ...(usual !== undefined && { usualBytes: usual }),
    ...(kind === 'snapshot' ? { keepNewest: snapshots.keep } : { keepDays: volumeCopies.keepDays }),
  };
}

/** When the schedule of a kind last wanted a run, epoch milliseconds. */
export function lastDue(kind: Kind, options: QdrantOptions, now: number): number {
  const pattern = kind === 'snapshot' ? options.snapshots.cron : options.volumeCopies.cron;
  const cron = new Cron(pattern, { paused: true, timezone: 'UTC' });
  return cron.previousRuns(1, new Date(now))[0]?.getTime() ?? 0;
}

/** Registers the actors, what reaches them, and the times at which they are reached. */
export function registerBackupActors(
  context: PluginContext,
  options: QdrantOptions,
  kinds: () => readonly Kind[],
): void {
  context.actor(
    defineActor({
      type: BACKUP_ACTOR,
      machine: snapshotJob,
      version: 1,
      input: (key) => settingsOf(key === 'volume' ? 'volume' : 'snapshot', options),
    }),
  );
  context.route(
    defineRoute(backupAsked, BACKUP_ACTOR, ({ payload: { kind: key, ...rest } }) => [
      { key, event: { type: 'REQUESTED', ...rest } },
    ]),
  );
  context.route(
    defineRoute(pruneRequested, BACKUP_ACTOR, ({ payload: { kind: key, ...rest } }) => [
      { key, event: { type: 'PRUNE_REQUESTED', ...rest } },
    ]),
  );
  context.route(
    defineRoute(backupsWatched, BACKUP_ACTOR, ({ payload: { kind: key, ...rest } }) => [
      { key, event: { type: 'WATCHED', ...rest } },
    ]),
  );
  context.route(
    defineRoute(seedsKept, BACKUP_ACTOR, ({ payload }) => [
      { key: 'snapshot', event: { type: 'SEEDED', ...payload } },
    ]),
  );
  context.route(
    defineRoute(deploymentLookedAt, BACKUP_ACTOR, ({ payload }) => [
      { key: 'snapshot', event: { type: 'LOOKED_AT', ...payload } },
    ]),
  );
  context.schedule(options.snapshots.cron, snapshotDue);
  context.schedule(options.volumeCopies.cron, volumeCopyDue);
  context.schedule(WATCH_CRON, watchDue);

  let cancel = () => {};
  context.onStart(() => {
    const { bus, clock } = context.services;
    const run = (of: Kind) => {
      if (kinds().includes(of)) bus.publish(backupAsked, { kind: of, at: clock.now(), by: 'schedule' });
    };
    const watch = () => {
      const at = clock.now();
      for (const of of kinds()) bus.publish(backupsWatched, { kind: of, at, due: lastDue(of, options, at) });
    };
    bus.stream(snapshotDue, 'memory').subscribe(() => run('snapshot'));
    bus.stream(volumeCopyDue, 'memory').subscribe(() => run('volume'));
    bus.stream(watchDue, 'memory').subscribe(watch);
    cancel = clock.after(FIRST_WATCH_MS, watch);
  });
  context.onStop(() => cancel());
}

/** What the actor of a kind knows; undefined before its first event. */
export function backupState(
  { actors }: Services,
  of: Kind,
): { readonly value: unknown; readonly context: SnapshotJobContext } | undefined {
  const state = actors.snapshot(actorRef(BACKUP_ACTOR, of));
  return state && { value: state.value, context: state.context as unknown as SnapshotJobContext };
}

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
