import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { DEADLINE_MS, watchdogRun } from '../../machines/watchdog/run.ts';
import { describeRunRecord } from './words.ts';

/** The watchdog's runs, one after another; its key is the name of the push monitor. */
export const runActor = defineActor({
  type: 'watchdog.run',
  machine: watchdogRun,
  version: 1,
  describe: describeRunRecord,
});

const noFields: z.ZodType<Record<string, never>> = z.object({});

export const watchdogDue = defineTopic(
  'watchdog.due',
  noFields,
  'A run of the watchdog is due by its schedule.',
);

const milliseconds = z.number().int().min(0).max(DEADLINE_MS);

/** Times are milliseconds; `remainingMs` is what is left of the deadline. */
export const watchdogRequested = defineTopic(
  'watchdog.requested',
  z.object({ deadlineMs: milliseconds, remainingMs: milliseconds }),
  'An operator requests a run of the watchdog, with a deadline.',
);

export const watchdogReported = defineTopic(
  'watchdog.reported',
  z.object({
    outcome: z.enum(['delivered', 'undelivered', 'unhealthy', 'killed']),
    lines: z.array(z.string()).readonly(),
    exitCode: z.number(),
    startedAt: z.number(),
  }),
  'A run of the watchdog has ended.',
);
