/** The actors of restore drills, their topics, their records in an operator's words, and their gauges. */
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { Metrics } from '../../core/host/metrics/metrics.ts';
import { DEFAULT_WORDS, defineActor, HIDDEN, type RecordOf } from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { restoreDrill } from '../../machines/restore/drill.ts';
import type { DrillContext } from '../../machines/restore/drill-shapes.ts';
import { restoreOverdue } from '../../machines/restore/overdue.ts';

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

function describeDrillRecord(record: RecordOf<typeof restoreDrill>): string | undefined {
  if (isRoutine(record)) return HIDDEN;
  const { event, to, effects } = record;
  switch (event.type) {
    case 'REQUESTED': {
      const isAccepted = effects.some(({ type }) => type === 'restore.choose');
      return `drill ${event.id} of path ${event.path} ${isAccepted ? 'begins' : 'is refused, another one runs'}`;
    }
    case 'CANCEL':
      return `is cancelled: ${event.reason}`;
    case 'STARTED':
      return event.leftovers?.length > 0 ? `finds left behind: ${event.leftovers.join(', ')}` : HIDDEN;
    case 'CHOSEN':
      return `restores ${event.source?.kind} ${event.source?.name}`;
    case 'PREPARED':
      return `into ${event.place}`;
    case 'RECOVERED':
      return 'is recovered';
    case 'VERIFIED':
      return `${event.report?.ok ? 'proven' : 'not proven'}: ${event.report?.verdict}`;
    case 'CLEANED':
      return `removed ${event.removed?.join(', ')}`;
    case 'effect.failed':
      return to.value === 'uncleaned' ? `is not cleaned up: ${event.message}` : `fails: ${event.message}`;
    case 'effect.lost':
      return 'was interrupted by the end of the runtime';
    default:
      return DEFAULT_WORDS;
  }
}

const isRoutine = ({ event }: LogRecord): boolean => event.type === 'init' || event.type === 'effect.done';
