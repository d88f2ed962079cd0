import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { RestoreContext, RestoreEvent } from '../../machines/restore/drill-shapes.ts';

const asked = z.object({
  id: z.string(),
  path: z.enum(['a', 'b']),
  snapshot: z.string().optional(),
  by: z.string(),
  at: z.number(),
});

export const drillAsked: Topic<z.infer<typeof asked>> = defineTopic(
  'restore.drill_asked',
  asked,
  'Somebody asks for a restore drill.',
);

export const drillCancelled: Topic<{ reason: string }> = defineTopic(
  'restore.drill_cancelled',
  z.object({ reason: z.string() }),
  'Whoever waits for the drill gives it up.',
);

/** A schedule's messages are empty, so each path has a topic of its own. */
export const drillDue: Readonly<Record<'a' | 'b', Topic<Record<string, never>>>> = {
  a: defineTopic('restore.drill_due_a', z.object({}), 'A drill of path a is due by its schedule.'),
  b: defineTopic('restore.drill_due_b', z.object({}), 'A drill of path b is due by its schedule.'),
};

/** Proven or not: the failure is told by itself. */
export const drillEnded: Topic<{ path: 'a' | 'b'; at: number }> = defineTopic(
  'restore.drill_ended',
  z.object({ path: z.enum(['a', 'b']), at: z.number() }),
  'A restore drill of a path has come to its verdict.',
);

/** Names a drill and everything that it makes: by its time, and unlike any other of that second. */
export function drillId(at: number, tail: string): string {
  const [date = '', time = ''] = new Date(at).toISOString().split('T');
  return `${date.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}-${tail}`;
}

/** A record of a drill in an operator's words, for `holdfast log`. */
export function describeDrillRecord({ event: recorded, to, effects }: LogRecord): string | undefined {
  const event = recorded as unknown as RestoreEvent | { type: 'init' | 'effect.done' };
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return '';
    case 'ASKED': {
      const isTaken = effects.some(({ type }) => type === 'restore.choose');
      return `drill ${event.id} of path ${event.path} ${isTaken ? 'begins' : 'is refused, another one runs'}`;
    }
    case 'CANCEL':
      return `is given up: ${event.reason}`;
    case 'STARTED':
      return event.leftovers?.length > 0 ? `finds left behind: ${event.leftovers.join(', ')}` : '';
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
      return undefined;
  }
}

/** How the newest drill of each path went, as gauges that an alert can be made of anywhere. */
export function registerMetrics(context: PluginContext, drills: () => RestoreContext | undefined): void {
  context.onStart(() => {
    const { metrics } = context.services;
    const newest = (path: string) => drills()?.results.findLast((result) => result.path === path);
    const gauge = (name: string, help: string, value: (path: string) => number | undefined) =>
      metrics.gauge(name, {
        help,
        labels: ['path'],
        collect: (own) => {
          for (const path of ['a', 'b']) {
            const found = value(path);
            if (found !== undefined) own.set({ path }, found);
          }
        },
      });
    gauge('restore_drill_ok', 'Whether the newest restore drill was proven: 1, or 0.', (path) => {
      const result = newest(path);
      return result && Number(result.outcome === 'completed');
    });
    gauge(
      'restore_drill_end_seconds',
      'When the newest restore drill ended, in seconds since 1970.',
      (path) => {
        const result = newest(path);
        return result && result.endedAt / 1_000;
      },
    );
    gauge('restore_drill_duration_seconds', 'How long the newest restore drill took.', (path) => {
      const result = newest(path);
      return result && (result.endedAt - result.at) / 1_000;
    });
    metrics.gauge('restore_scratch_left', {
      help: 'Clean-ups after restore drills that failed so far and are tried again.',
      collect: (own) => own.set(drills()?.cleanFailures ?? 0),
    });
  });
}
