/** The actors of restore drills, their topics, and their gauges. */
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { Metrics } from '../../core/host/metrics/metrics.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { restoreDrill } from '../../machines/restore/drill.ts';
import type { DrillContext } from '../../machines/restore/drill-shapes.ts';
import { restoreOverdue } from '../../machines/restore/overdue.ts';
import { describeDrillRecord, describeOverdue } from './words.ts';

/** The only key of the drill's actor: drills run one at a time. */
export const DRILL_KEY = 'store';
/** `a` restores a snapshot that the store itself makes, `b` a copy of the store's volume. */
export const DRILL_PATHS = ['a', 'b'] as const;

export const drillActor = defineActor({
  type: 'restore.drill',
  machine: restoreDrill,
  version: 1,
  describe: describeDrillRecord,
});

/** Its key is the path. */
export const overdueActor = defineActor({
  type: 'restore.overdue',
  machine: restoreOverdue,
  version: 1,
  describe: describeOverdue,
  input: (path) => ({ path }),
});

const path = z.enum(DRILL_PATHS);
const noFields: z.ZodType<Record<string, never>> = z.object({});

export const drillRequested = defineTopic(
  'restore.drill_requested',
  z.object({ id: z.string(), path, snapshot: z.string().optional(), by: z.string(), at: z.number() }),
  'A restore drill is requested.',
);

export const drillCancelled = defineTopic(
  'restore.drill_cancelled',
  z.object({ reason: z.string() }),
  'Whoever requested the drill cancels it.',
);

/** Messages of a schedule have no fields, so each path has a topic of its own. */
export const drillDue = {
  a: defineTopic('restore.drill_due_a', noFields, 'A drill of path a is due by its schedule.'),
  b: defineTopic('restore.drill_due_b', noFields, 'A drill of path b is due by its schedule.'),
} as const;

export const drillEnded = defineTopic(
  'restore.drill_ended',
  z.object({ path, at: z.number() }),
  'A restore drill of a path has ended, proven or not.',
);

/** The name of a drill and of everything that it makes: its time, and a part that no other drill of that second has. */
export function drillId(at: number, tail: string): string {
  const [date = '', time = ''] = new Date(at).toISOString().split('T');
  return `${date.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}-${tail}`;
}

/** Gauges of the newest drill of each path. */
export function registerMetrics(metrics: Metrics, drills: () => DrillContext | undefined): void {
  const newest = (of: string) => drills()?.results.findLast((result) => result.path === of);
  const gauge = (name: string, help: string, read: (of: string) => number | undefined) =>
    metrics.gauge(name, {
      help,
      labels: ['path'],
      collect: (own) => {
        for (const each of DRILL_PATHS) {
          const value = read(each);
          if (value !== undefined) own.set({ path: each }, value);
        }
      },
    });
  gauge('restore_drill_ok', 'Whether the newest restore drill was proven: 1, or 0.', (of) => {
    const result = newest(of);
    return result && Number(result.outcome === 'completed');
  });
  gauge('restore_drill_end_seconds', 'When the newest restore drill ended, in seconds since 1970.', (of) => {
    const result = newest(of);
    return result && result.endedAt / 1_000;
  });
  gauge('restore_drill_duration_seconds', 'How long the newest restore drill took.', (of) => {
    const result = newest(of);
    return result && (result.endedAt - result.at) / 1_000;
  });
  metrics.gauge('restore_scratch_left', {
    help: 'Clean-ups after restore drills that failed so far and are tried again.',
    collect: (own) => own.set(drills()?.cleanFailures ?? 0),
  });
}
