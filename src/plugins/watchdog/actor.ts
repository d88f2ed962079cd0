import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { RunReport } from '../../machines/watchdog/run.ts';

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

/** A record of the watchdog in an operator's words, for `holdfast log`. */
export function describeWatchdogRecord({ event, effects }: LogRecord): string | undefined {
  const report = effects.find(({ type }) => type === 'watchdog.report')?.params as
    | { lines?: unknown }
    | undefined;
  const [line] = Array.isArray(report?.lines) ? report.lines : [];
  if (line !== undefined) return String(line);
  switch (event.type) {
    case 'init':
    case 'effect.done':
    case 'START':
      return '';
    case 'RUN':
      return 'looks at the stack';
    case 'CHECKED':
      return `finds it well: stale=${String(event.stale)}s drift=${String(event.drift)}`;
  }
  return delayOf(event.type) === undefined ? undefined : 'looks at the stack';
}
