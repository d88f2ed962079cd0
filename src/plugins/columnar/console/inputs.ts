import type { PageInput } from '../../../core/contracts/console.ts';
import { RANGES, USUAL_RANGE } from '../../../core/host/history/time-ranges.ts';

/** The least number of OpenTelemetry's severities. */
export const LEVELS: Readonly<Record<string, number>> = {
  any: 0,
  'info or worse': 9,
  'warning or worse': 13,
  'error or worse': 17,
};
export const ONLY_FAILED = 'only failed';
export const ROW_LIMITS = ['100', '1000'] as const;

/** What a person chooses a time by. It never reaches beyond the moment that the console shows. */
const rangeInputs: readonly PageInput[] = [
  { name: 'range', title: 'Time', kind: 'choice', choices: Object.keys(RANGES), value: USUAL_RANGE },
  { name: 'until', title: 'Until (UTC)', kind: 'text', example: '2026-11-23T09:30' },
];

export const logInputs: readonly PageInput[] = [
  { name: 'text', title: 'Text', kind: 'text', example: 'timeout' },
  { name: 'service', title: 'Service', kind: 'text', example: 'gateway' },
  { name: 'severity', title: 'Severity', kind: 'choice', choices: Object.keys(LEVELS), value: 'any' },
  { name: 'attribute', title: 'Attribute', kind: 'text', example: 'host.name=nas-1' },
  ...rangeInputs,
];

export const traceInputs: readonly PageInput[] = [
  { name: 'service', title: 'Service', kind: 'text', example: 'gateway' },
  { name: 'span', title: 'Span name', kind: 'text', example: 'tools/call' },
  { name: 'least', title: 'At least', kind: 'text', example: '250ms' },
  { name: 'outcome', title: 'Outcome', kind: 'choice', choices: ['any', ONLY_FAILED], value: 'any' },
  { name: 'attribute', title: 'Attribute', kind: 'text', example: 'http.route=/cart' },
  ...rangeInputs,
];

export const oneTraceInputs: readonly PageInput[] = [
  { name: 'trace', title: 'Trace', kind: 'text', example: '5b8efff798038103d269b633813fc60c' },
];

export const sqlInputs: readonly PageInput[] = [
  {
    name: 'sql',
    title: 'SQL that reads',
    kind: 'long',
    example:
      'SELECT ServiceName, count() FROM otel_logs WHERE Timestamp > now() - INTERVAL 1 HOUR GROUP BY 1 ORDER BY 2 DESC',
  },
  { name: 'limit', title: 'Rows', kind: 'choice', choices: ROW_LIMITS, value: ROW_LIMITS[0] },
];
