import { ColumnarDatabaseToken, type SignalRow } from '../../core/contracts/columnar-database.ts';
import { OWN_SERVICE } from '../../core/contracts/columnar-tables.ts';
import { type JobRun, jobRun } from '../../core/contracts/jobs.ts';
import { runTrouble, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { type Identity, identityOf } from '../../core/host/identity.ts';
import type { PluginContext, PluginStatus } from '../../core/host/plugin/definition.ts';
import type { RunReport, WatchdogEvent } from '../../machines/watchdog/run.ts';
import { DEADLINE_MS } from '../../machines/watchdog/run.ts';
import { watchdogReported } from './actor.ts';
import type { WatchdogOptions } from './checks.ts';
import { checkStack } from './checks.ts';

/** A report that cannot be stored soon is dropped: the next one comes in minutes. */
const STORE_SECONDS = 5;

/** Carries out the effects of the watchdog's machine. */
export function registerEffects(context: PluginContext, options: WatchdogOptions): void {
  // The machine's own deadline ends the run; these only end work that nobody waits for any more.
  const effect = { onRecovery: 'fail', deadlineMs: DEADLINE_MS + 1_000 } as const;

  context.effect(
    'watchdog.check',
    async (
      _params,
      { signal, correlation, cause },
      { bus, clock, find, plugins },
    ): Promise<WatchdogEvent> => {
      const began = clock.now();
      bus.publish(jobRun, { phase: 'started', job: options.monitor, at: began }, { correlation, cause });
      const findings = await checkStack(
        find(ColumnarDatabaseToken),
        absentReason(plugins()),
        options,
        signal,
      );
      const at = clock.now();
      const time = new Date(at).toISOString();
      return { type: 'CHECKED', at, time, tookMs: Math.max(0, at - began), ...findings };
    },
    { ...effect, adapter: ColumnarDatabaseToken.name },
  );

  context.effect<{ msg: string; ping: number }>(
    'watchdog.push',
    async (beat, { signal }, { clock, find }) => {
      const receiver = find(UptimeMonitorToken);
      if (receiver) return receiver.pushEvent(options.monitor, { status: 'up', ...beat }, signal);
      const reason = 'no plugin provides an uptime monitor';
      return { type: 'PUSH_FAILED', at: clock.now(), reason, exitStatus: 3 };
    },
    { ...effect, adapter: UptimeMonitorToken.name },
  );

  context.effect<RunReport>(
    'watchdog.report',
    async (report, { correlation, cause, at }, { bus, dataDir, find, logger }) => {
      const { outcome: ended, lines } = report;
      const text = lines[0] ?? '';
      logger[ended === 'delivered' ? 'info' : 'warn'](
        { outcome: ended, line: text, correlation },
        'watchdog.run',
      );
      const meta = { correlation, cause };
      if (ended !== 'delivered') {
        bus.publish(runTrouble, { monitor: options.monitor, at, outcome: ended, text }, meta);
      }
      bus.publish(watchdogReported, report, meta);
      bus.publish(jobRun, runOf(report, options.monitor, at), meta);
      const database = find(ColumnarDatabaseToken);
      await database
        ?.insert('otel_logs', [rowOf(report, at, identityOf(dataDir))], { maxSeconds: STORE_SECONDS })
        .catch((error: unknown) => logger.debug({ err: error }, 'watchdog.line_not_stored'));
    },
    { onRecovery: 'retry', adapter: ColumnarDatabaseToken.name },
  );
}

/** How the run itself went: failed checks are no failure of the run (O14). */
function runOf({ outcome, lines }: RunReport, job: string, at: number): JobRun {
  const text = (lines[0] ?? '').slice(0, 1_000);
  if (outcome === 'delivered' || outcome === 'unhealthy') {
    return { phase: 'ended', job, at, outcome: 'succeeded', text };
  }
  const cause = outcome === 'undelivered' ? 'exit' : /^DEADLINE/.test(text) ? 'deadline' : 'unknown';
  return { phase: 'ended', job, at, outcome: 'failed', cause, text };
}

/** Why there is no database. */
function absentReason(plugins: readonly PluginStatus[]): string {
  const failed = plugins.filter(({ state }) => state === 'failed');
  if (failed.length > 0)
    return failed.map(({ name, reason }) => `plugin ${name} failed: ${reason}`).join('; ');
  return 'none: no instance with an embedded one runs here, and HOLDFAST_CLICKHOUSE_URL names no server';
}

/** The report as a row of `otel_logs` (O6). */
function rowOf({ outcome, lines, exitCode }: RunReport, at: number, { host, instance }: Identity): SignalRow {
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
