import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import type { RunReport } from '../../machines/watchdog/run-shapes.ts';

/** It is time for a run, by the clock or because somebody asks. */
export const watchdogDue: Topic<Record<string, never>> = defineTopic(
  'watchdog.due',
  z.object({}),
  'It is time for the watchdog to look.',
);

export const watchdogReported: Topic<RunReport> = defineTopic(
  'watchdog.reported',
  z.object({
    outcome: z.enum(['delivered', 'undelivered', 'unhealthy', 'killed']),
    lines: z.array(z.string()),
    exitCode: z.number(),
    startedAt: z.number(),
  }),
  'A run of the watchdog is over, and this is how.',
);
