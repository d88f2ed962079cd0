import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';

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
