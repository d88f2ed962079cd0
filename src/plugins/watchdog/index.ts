/**
 * The watchdog (O10–O14): every five minutes it asks the columnar database whether the stack is well (`checks.ts`), and
 * sends a heartbeat only then. `machines/watchdog-run.ts` decides; `effects.ts` carries out; `run-alone.ts` is one run
 * without an instance.
 *
 * Imports core, bus and its machine; no other plugin.
 */
import { z } from 'zod';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { Json } from '../../core/kernel/json.ts';
import type { RunReport, WatchdogContext } from '../../machines/watchdog/run.ts';
import { DEADLINE_MS, watchdogRun as machine } from '../../machines/watchdog/run.ts';
import { describeWatchdogRecord, watchdogDue, watchdogReported } from './actor.ts';
import { watchdogOptions } from './checks.ts';
import { RUN_PATH, watchdogRun } from './command.ts';
import { registerEffects } from './effects.ts';

const ACTOR = 'watchdog.run';

/** @example watchdog({ producers: ['otel_logs'], staleAfter: 300 }) */
export const watchdog = definePlugin({
  name: 'watchdog',
  about: {
    area: 'Uptime and alerts',
    what: 'looks at the stack every five minutes, and beats only if it is well',
    docs: 'uptime.md',
  },
  options: watchdogOptions,
  wants: [ColumnarDatabaseToken, UptimeMonitorToken],
  register(context, options) {
    const key = options.monitor;
    context.actor(defineActor({ type: ACTOR, machine, version: 1, describe: describeWatchdogRecord }));
    context.route(
      defineRoute(watchdogDue, ACTOR, () => [
        { key, event: { type: 'RUN', at: context.services.clock.now() } },
      ]),
    );
    context.schedule(options.cron, watchdogDue);
    registerEffects(context, options);
    context.command(watchdogRun);

    context.control((surface) => {
      serveOperation(surface, RUN_PATH, z.strictObject({}), (_asked, { correlation }) => {
        const { bus, clock } = context.services;
        return new Promise<RunReport>((resolve, reject) => {
          const owner = `watchdog ${correlation}`;
          // A run that is under way is the one that is asked for.
          bus.subscribe(watchdogReported, owner, ({ payload }) => end(() => resolve(payload)));
          const cancel = clock.after(DEADLINE_MS + 5_000, () =>
            end(() => reject(new Error('no report came'))),
          );
          const end = (tell: () => void) => {
            cancel();
            bus.release(owner);
            tell();
          };
          bus.publish(watchdogDue, {}, { correlation });
        });
      });
    });

    context.health('watchdog', () => {
      const state = context.services.actors.snapshot(actorRef(ACTOR, key));
      return state && status(state.context as unknown as WatchdogContext);
    });
    context.onStart(() => {
      const { actors, clock } = context.services;
      actors.send(actorRef(ACTOR, key), { type: 'START', at: clock.now() });
    });
  },
});

/** The heartbeat is what says how the stack is; how the run went is told beside it. */
function status({ last, deliveredAt, deliveredMsg }: WatchdogContext): Json {
  if (!last) return { heartbeat: 'none yet: the first run is still to come' };
  const { outcome, lines, exitCode } = last;
  const before =
    deliveredAt === undefined ? 'none was ever sent' : `the last one at ${iso(deliveredAt)}: ${deliveredMsg}`;
  return {
    ...(outcome !== 'delivered' && { ok: false, reason: `no heartbeat: ${lines[0]}` }),
    heartbeat:
      outcome === 'delivered' ? `sent at ${iso(deliveredAt ?? 0)}: ${deliveredMsg}` : `not sent; ${before}`,
    lastRun: `${outcome}, exit ${exitCode} (says how the run went, not how the stack is)`,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
