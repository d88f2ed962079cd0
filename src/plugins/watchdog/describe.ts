import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';

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
