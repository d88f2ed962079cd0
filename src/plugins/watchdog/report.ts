/** The report of a run as others get it: the list of scheduled runs, and the columnar database. */
import type { SignalRow } from '../../core/contracts/columnar-database.ts';
import { OWN_SERVICE } from '../../core/contracts/columnar-tables.ts';
import type { JobRun } from '../../core/contracts/jobs.ts';
import type { Identity } from '../../core/host/identity.ts';
import type { RunReport } from '../../machines/watchdog/run.ts';

/** A report that cannot be stored soon is dropped: the next one comes in minutes. */
export const STORE_SECONDS = 5;
/** The outcome of the run itself: failed checks are no failure of the run (O14). */
export function runOf({ outcome, lines }: RunReport, job: string, at: number): JobRun {
  const text = (lines[0] ?? '').slice(0, 1_000);
  if (outcome === 'delivered' || outcome === 'unhealthy') {
    return { phase: 'ended', job, at, outcome: 'succeeded', text };
  }
  const cause = outcome === 'undelivered' ? 'exit' : /^DEADLINE/.test(text) ? 'deadline' : 'unknown';
  return { phase: 'ended', job, at, outcome: 'failed', cause, text };
}

/** The report as a row of `otel_logs` (O6). */
export function rowOf(
  { outcome, lines, exitCode }: RunReport,
  at: number,
  { host, instance }: Identity,
): SignalRow {
  const isHealthy = outcome === 'delivered';
  return {
    Timestamp: new Date(at).toISOString(),
    SeverityText: isHealthy ? 'INFO' : 'ERROR',
    SeverityNumber: isHealthy ? 9 : 17,
    ServiceName: OWN_SERVICE,
    Body: lines.join('\n'),
    ResourceAttributes: {
      'service.name': OWN_SERVICE,
      'host.name': host,
      'service.instance.id': instance,
    },
    LogAttributes: { 'watchdog.outcome': outcome, 'watchdog.exit_code': String(exitCode) },
  };
}
