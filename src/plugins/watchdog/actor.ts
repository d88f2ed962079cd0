import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { DEFAULT_WORDS, defineActor, HIDDEN, type RecordOf } from '../../core/kernel/actors/definition.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import { watchdogRun } from '../../machines/watchdog/run.ts';

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
  'A run of the watchdog is due by its schedule, or requested.',
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

function describeRunRecord(record: RecordOf<typeof watchdogRun>): string | undefined {
  const report = reportLine(record);
  if (report !== undefined) return report;
  if (isRoutine(record)) return HIDDEN;
  const { event } = record;
  switch (event.type) {
    case 'RUN':
      return 'checks the stack';
    case 'CHECKED':
      return `finds it healthy: stale=${event.stale}s drift=${event.drift}`;
    default:
      return DEFAULT_WORDS;
  }
}

/** First line of the report that the record asks for. */
function reportLine({ effects, event }: LogRecord): string | undefined {
  const params: unknown = effects.find(({ type }) => type === 'watchdog.report')?.params;
  const { lines } = z.object({ lines: z.array(z.string()) }).safeParse(params).data ?? {};
  if (lines?.[0] !== undefined) return lines[0];
  return delayOf(event.type) === undefined ? undefined : 'checks the stack';
}

const isRoutine = ({ event }: LogRecord): boolean => ['init', 'effect.done', 'START'].includes(event.type);
