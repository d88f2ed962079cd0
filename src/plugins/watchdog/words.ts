/** Runs of the watchdog, in an operator's words for `holdfast log`. Nothing that a running plugin needs is loaded with them. */
import { z } from 'zod';
import {
  HIDDEN,
  type ProblemTest,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import { isObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { watchdogRun } from '../../machines/watchdog/run.ts';

export const words: RecordWords = {
  'watchdog.run': describeRunRecord,
};

export function describeRunRecord(record: RecordOf<typeof watchdogRun>): string | undefined {
  const report = reportLine(record);
  if (report !== undefined) return report;
  const { event } = record;
  if (String(event.type) === 'init' || String(event.type) === 'effect.done') return HIDDEN;
  switch (event.type) {
    case 'RUN':
      return 'checks the stack';
    case 'CHECKED':
      return `finds it healthy: stale=${event.stale}s drift=${event.drift}`;
    default:
      return routineWords(record, ROUTINE);
  }
}
describeRunRecord.problem = {
  marks: ['"PUSH_REFUSED"', '"PUSH_FAILED"', '"unhealthy"'],
  is: ({ event, effects }) =>
    event.type === 'PUSH_REFUSED' ||
    event.type === 'PUSH_FAILED' ||
    effects.some(
      ({ type, params }) => type === 'watchdog.report' && isObject(params) && params.outcome === 'unhealthy',
    ),
} satisfies ProblemTest;

/** First line of the report that the record asks for. */
function reportLine({ effects, event }: LogRecord): string | undefined {
  const params: unknown = effects.find(({ type }) => type === 'watchdog.report')?.params;
  const { lines } = z.object({ lines: z.array(z.string()) }).safeParse(params).data ?? {};
  if (lines?.[0] !== undefined) return lines[0];
  return delayOf(event.type) === undefined ? undefined : 'checks the stack';
}

const ROUTINE = {
  START: 'waits for its first run',
  PUSHED: 'the heartbeat arrived',
  PUSH_REFUSED: 'the heartbeat was refused',
  PUSH_FAILED: 'the heartbeat did not arrive',
};
