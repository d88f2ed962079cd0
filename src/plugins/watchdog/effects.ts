import { ColumnarDatabaseToken, type SignalRow } from '../../core/contracts/columnar-database.ts';
import { OWN_SERVICE } from '../../core/contracts/columnar-tables.ts';
import { type JobRun, jobRun } from '../../core/contracts/jobs.ts';
import { runTrouble, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { type Identity, identityOf } from '../../core/host/identity.ts';
import type { PluginContext, PluginStatus } from '../../core/host/plugin/definition.ts';
import type { RunReport, WatchdogContext, WatchdogEvent } from '../../machines/watchdog/run.ts';
import { DEADLINE_MS } from '../../machines/watchdog/run.ts';
import { runActor, watchdogReported } from './actor.ts';
import type { WatchdogOptions } from './checks.ts';
import { checkStack } from './checks.ts';

/** A report that cannot be stored soon is dropped: the next one comes in minutes. */
const STORE_SECONDS = 5;
/** The longest wait for anything after the deadline, milliseconds, so that the command ends soon after it. */
const STORE_OVERDUE_MS = 1_000;

/** Carries out the effects of the watchdog's machine. */
export function registerEffects(context: PluginContext, options: WatchdogOptions): void {
  // The machine's own deadline ends the run; these only end work that nobody waits for any more.
  const effect = { onRecovery: 'fail', deadlineMs: DEADLINE_MS + 1_000 } as const;
  /** Aborted when the run is over: its deadline may end it while a query or a push is under way. */
  let work = new AbortController();

  context.effect(
    'watchdog.check',
    async (
      _params,
      { signal, correlation, cause },
      { actors, bus, clock, find, plugins },
    ): Promise<WatchdogEvent | undefined> => {
      const began = clock.now();
      work = new AbortController();
      const { signal: isOver } = work;
      bus.publish(jobRun, { phase: 'started', job: options.monitor, at: began }, { correlation, cause });
      const ends = AbortSignal.any([signal, isOver]);
      const { produced = [], arrivals = {} } = actors.get(runActor, options.monitor)?.context ?? {};
      const steady = Object.keys(arrivals).filter((table) => arrivals[table]?.steady);
      const database = find(ColumnarDatabaseToken);
      const expected = { ...options, produced, steady };
      const checks = checkStack(database, absentReason(plugins()), expected, ends);
      const findings = await untilAborted(ends, checks).catch((error: unknown) => {
        if (isOver.aborted) return undefined;
        throw error;
      });
      if (!findings) return undefined; // the run has been reported already
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
      if (receiver) {
        const ends = AbortSignal.any([signal, work.signal]);
        return receiver.pushEvent(options.monitor, { status: 'up', ...beat }, ends);
      }
      const reason = 'no plugin provides an uptime monitor';
      return { type: 'PUSH_FAILED', at: clock.now(), reason, exitStatus: 3 };
    },
    { ...effect, adapter: UptimeMonitorToken.name },
  );

  context.effect<RunReport>(
    'watchdog.report',
    async (report, { correlation, cause, at }, { actors, bus, clock, dataDir, find, logger }) => {
      const { outcome: ended, lines } = report;
      work.abort();
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
      const run = actors.get(runActor, options.monitor)?.context;
      const limit = new AbortController();
      const cancel = clock.after(storeMs(run, clock.now()), () => limit.abort());
      const { signal } = limit;
      const row = rowOf(report, at, identityOf(dataDir));
      const stored = find(ColumnarDatabaseToken)?.insert('otel_logs', [row], {
        maxSeconds: STORE_SECONDS,
        signal,
      });
      await untilAborted(signal, stored).catch((error: unknown) =>
        logger.debug({ err: error }, 'watchdog.line_not_stored'),
      );
      cancel();
    },
    { onRecovery: 'retry', adapter: ColumnarDatabaseToken.name },
  );
}

/** Waits for work that may ignore its signal, until the signal is aborted. */
async function untilAborted<T>(signal: AbortSignal, work: Promise<T> | undefined): Promise<T | undefined> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** How long storing the line may take, milliseconds: what is left until the run's deadline, within limits. */
function storeMs(run: WatchdogContext | undefined, now: number): number {
  const { startedAt = 0, deadlineMs = DEADLINE_MS, remainingMs = deadlineMs } = run ?? {};
  return Math.max(STORE_OVERDUE_MS, Math.min(STORE_SECONDS * 1_000, startedAt + remainingMs - now));
}

/** The outcome of the run itself: failed checks are no failure of the run (O14). */
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
