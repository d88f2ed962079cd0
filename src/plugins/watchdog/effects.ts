import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { jobRun } from '../../core/contracts/jobs.ts';
import { runTrouble, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { unlessAborted } from '../../core/host/deadline.ts';
import { identityOf } from '../../core/host/identity.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { RunReport, WatchdogContext, WatchdogEvent } from '../../machines/watchdog/run.ts';
import { DEADLINE_MS } from '../../machines/watchdog/run.ts';
import { runActor, watchdogReported } from './actor.ts';
import type { WatchdogOptions } from './checks.ts';
import { absentReason, checkStack } from './checks.ts';
import type { QuietRuns } from './quiet-runs.ts';
import { rowOf, runOf, STORE_SECONDS } from './report.ts';

/** The longest wait for anything after the deadline, milliseconds, so that the command ends soon after it. */
const STORE_OVERDUE_MS = 1_000;

/** Carries out the effects of the watchdog's machine. */
export function registerEffects(
  context: PluginContext<Services & { readonly quiet: QuietRuns }>,
  options: WatchdogOptions,
): void {
  // The machine's own deadline ends the run; these only end work that nobody waits for any more.
  const effect = { onRecovery: 'fail', deadlineMs: DEADLINE_MS + 1_000 } as const;
  /** Aborted when the run is over: its deadline may end it while a query or a push is under way. */
  let work = new AbortController();

  context.effect(
    'watchdog.check',
    async (
      _params,
      { signal, correlation, cause },
      { actors, bus, clock, find, plugins, quiet },
    ): Promise<WatchdogEvent | undefined> => {
      const began = clock.now();
      work = new AbortController();
      const { signal: isOver } = work;
      bus.publish(jobRun, { phase: 'started', job: options.monitor, at: began }, { correlation, cause });
      const ends = AbortSignal.any([signal, isOver]);
      const { looks, arrivals: between } = quiet.take();
      const known = actors.get(runActor, options.monitor)?.context;
      const { produced = [] } = known ?? {};
      const arrivals = between ?? known?.arrivals ?? {};
      const steady = Object.keys(arrivals).filter((table) => arrivals[table]?.steady);
      const database = find(ColumnarDatabaseToken);
      const expected = { ...options, produced, steady };
      const checks = checkStack(database, absentReason(plugins()), expected, ends);
      const findings = await unlessAborted(checks, ends).catch((error: unknown) => {
        if (isOver.aborted) return undefined;
        throw error;
      });
      if (!findings) return undefined; // the run has been reported already
      const at = clock.now();
      const time = new Date(at).toISOString();
      const before = { ...(looks > 0 && { looks: looks + 1 }), ...(between && { arrivals: between }) };
      return { type: 'CHECKED', at, time, tookMs: Math.max(0, at - began), ...findings, ...before };
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
      await unlessAborted(Promise.resolve(stored), signal).catch((error: unknown) =>
        logger.debug({ err: error }, 'watchdog.line_not_stored'),
      );
      cancel();
    },
    { onRecovery: 'retry', adapter: ColumnarDatabaseToken.name },
  );
}

/** How long storing the line may take, milliseconds: what is left until the run's deadline, within limits. */
function storeMs(run: WatchdogContext | undefined, now: number): number {
  const { startedAt = 0, deadlineMs = DEADLINE_MS, remainingMs = deadlineMs } = run ?? {};
  return Math.max(STORE_OVERDUE_MS, Math.min(STORE_SECONDS * 1_000, startedAt + remainingMs - now));
}
