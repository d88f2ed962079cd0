/**
 * The watchdog (O10–O14): every five minutes it checks through the columnar database whether the stack is healthy
 * (`checks.ts`), and sends a heartbeat only then. `machines/watchdog/run.ts` decides, `effects.ts` carries out, and
 * `command.ts` runs it once, also without an instance.
 */

import { z } from 'zod';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { consolePages } from '../../core/contracts/console.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { timestamp } from '../../core/host/terminal.ts';
import { isoTime } from '../../core/kernel/clock.ts';
import { DEADLINE_MS, type RunReport, SCHEDULE, type WatchdogContext } from '../../machines/watchdog/run.ts';
import { runActor, watchdogDue, watchdogReported, watchdogRequested } from './actor.ts';
import { watchdogOptions } from './checks.ts';
import { RUN_PATH, runCommand } from './command.ts';
import { watchdogPage, watchdogPageOf } from './console-page.ts';
import { registerEffects } from './effects.ts';
import { QuietRuns } from './quiet-runs.ts';

const runFields = z.strictObject({ deadlineMs: z.int().min(1).max(DEADLINE_MS).default(DEADLINE_MS) });

/**
 * The plugin `watchdog`: checks the stack every five minutes, and sends a heartbeat only if it is healthy.
 *
 * @example watchdog({ signals: ['otel_logs'], staleAfter: 300 })
 * @public
 */
export const watchdog = definePlugin({
  name: 'watchdog',
  about: {
    area: 'Uptime and alerts',
    what: 'checks the stack every five minutes, and sends a heartbeat only if it is healthy',
    docs: 'uptime.md',
  },
  options: watchdogOptions,
  wants: [ColumnarDatabaseToken, UptimeMonitorToken],
  singleton: 'watchdog',
  start(services, options) {
    const { actors, bus, clock } = services;
    actors.send(runActor, options.monitor, { type: 'START', at: clock.now() });
    const quiet = new QuietRuns(services, options);
    bus.subscribe(watchdogDue, 'watchdog', () => void quiet.due());
    return { ...services, quiet };
  },
  register(context, options) {
    const key = options.monitor;
    context.actor(runActor);
    context.route(watchdogDue, runActor, (_message, { clock, quiet }) =>
      quiet.applies() ? [] : [{ key, event: { type: 'RUN', at: clock.now() } }],
    );
    context.route(watchdogRequested, runActor, ({ payload }, { clock }) => [
      { key, event: { type: 'RUN', at: clock.now(), ...payload } },
    ]);
    context.schedule(options.cron, watchdogDue);
    registerEffects(context, options);
    context.command(runCommand);
    context.contribute(consolePages, options.cron === SCHEDULE ? watchdogPage : watchdogPageOf(options.cron));
    context.control((surface, services) => {
      serveOperation(surface, RUN_PATH, runFields, ({ deadlineMs }, { correlation }) =>
        reportOfNextRun(services, deadlineMs, correlation),
      );
    });
    context.health('watchdog', ({ actors, quiet: { delivered } }) => {
      const state = actors.get(runActor, key);
      if (!state) return undefined;
      const isNewer = delivered && delivered.at > (state.context.deliveredAt ?? 0);
      const newest = isNewer ? { deliveredAt: delivered.at, deliveredMsg: delivered.msg } : {};
      return status({ ...state.context, ...newest });
    });
    context.onStop(({ bus, quiet }) => {
      bus.release('watchdog');
      quiet.stop();
    });
  },
});

/** Requests a run and waits for its report; a run that is under way already is the one that counts. */
function reportOfNextRun(
  { bus, clock }: Services,
  deadlineMs: number,
  correlation: string,
): Promise<RunReport> {
  const { promise, resolve, reject } = Promise.withResolvers<RunReport>();
  const owner = `watchdog ${correlation}`;
  bus.subscribe(watchdogReported, owner, ({ payload }) => resolve(payload));
  const cancel = clock.after(DEADLINE_MS + 5_000, () => reject(new Error('no report came')));
  bus.publish(watchdogRequested, { deadlineMs, remainingMs: deadlineMs }, { correlation });
  return promise.finally(() => {
    cancel();
    bus.release(owner);
  });
}

/** The heartbeat shows the state of the stack; the outcome of the run itself is shown beside it. */
function status({ last, deliveredAt, deliveredMsg, unknown }: WatchdogContext) {
  if (!last)
    return { text: 'the first run is still to come', heartbeat: 'none yet: the first run is still to come' };
  const { outcome, lines, exitCode } = last;
  const before =
    deliveredAt === undefined
      ? 'none was ever sent'
      : `the last one at ${isoTime(deliveredAt)}: ${deliveredMsg}`;
  const isSent = outcome === 'delivered';
  const newest =
    deliveredAt === undefined ? 'none was ever sent' : `the newest was sent at ${timestamp(deliveredAt)}`;
  return {
    text: [
      isSent
        ? `a heartbeat was sent at ${timestamp(deliveredAt ?? 0)}: ${deliveredMsg}`
        : `the newest run sent no heartbeat: ${lines[0]}; ${newest}`,
      ...(unknown && unknown.length > 0 ? [`unknown: ${unknown.join('; ')}`] : []),
    ].join('; '),
    ...(outcome !== 'delivered' && { ok: false, reason: `no heartbeat: ${lines[0]}` }),
    heartbeat:
      outcome === 'delivered'
        ? `sent at ${isoTime(deliveredAt ?? 0)}: ${deliveredMsg}`
        : `not sent; ${before}`,
    ...(unknown && unknown.length > 0 && { unknown: unknown.join('; ') }),
    lastRun: `${outcome}, exit ${exitCode} (says how the run went, not how the stack is)`,
  };
}
