/**
 * The embedded uptime monitor (port 3001): push monitors with Uptime Kuma's push contract, one actor each
 * (`machines/push-monitor.ts`), and status pages. `take-push.ts` takes a beat, `monitors.ts` knows the listed ones,
 * `view.ts` says how one is, `page.ts`, `kuma.ts` and `badge.ts` show it.
 *
 * Imports core, bus and its machine; no other plugin.
 */

import { join } from 'node:path';
import { runTrouble } from '../../core/contracts/uptime.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { pushMonitor } from '../../machines/uptime-monitor/monitor.ts';
import { UptimeMonitorError } from './errors.ts';
import { Monitors } from './monitors.ts';
import { registerOperations } from './operate.ts';
import { monitorSettings, uptimeMonitorOptions } from './options.ts';
import { PushTokens } from './push-tokens.ts';
import { monitorRoutes } from './routes.ts';
import { MONITOR_ACTOR } from './take-push.ts';
import { describeMonitorRecord } from './view.ts';

/** @example uptimeMonitor({ monitors: [{ name: 'backup', interval: 86_400, retries: 1, retryInterval: 3_600 }] }) */
export const uptimeMonitor = definePlugin({
  name: 'uptime-monitor',
  about: {
    area: 'Uptime and alerts',
    what: 'the embedded monitor of beats, with status pages',
    docs: 'uptime.md',
  },
  options: uptimeMonitorOptions,
  env: { HOLDFAST_UPTIME_PORT: 'port' },
  variables: {
    HOLDFAST_UPTIME_PORT: 'Port of the embedded uptime monitor.',
  },
  errors: UptimeMonitorError,
  register(context, options) {
    const { port, host, allowedHosts } = options;
    const settings = monitorSettings(options);
    const byName = new Map(settings.map((each) => [each.name, each]));
    let monitors: Monitors | undefined;
    let tokens: PushTokens | undefined;
    const known = () => {
      if (!monitors) throw new Error('the monitors are known once the plugin has started');
      return monitors;
    };

    context.actor(
      defineActor({
        type: MONITOR_ACTOR,
        machine: pushMonitor,
        version: 1,
        durability: (record) => (isRoutine(record) ? 'batched' : 'sync'),
        input: (key) => ({ ...byName.get(key) }),
        describe: describeMonitorRecord,
      }),
    );
    context.route(
      defineRoute(runTrouble, MONITOR_ACTOR, ({ payload: { monitor, ...trouble } }) =>
        byName.has(monitor) ? [{ key: monitor, event: { type: 'TROUBLE', trouble } }] : [],
      ),
    );
    // Push tokens are in the path, so the surface needs no other; pages of one that others can reach give no reasons.
    const surface = { name: 'uptime', port, host, allowedHosts, portVariable: 'HOLDFAST_UPTIME_PORT' };
    context.http({ ...surface, admission: 'own', bodyLimit: 64 * 1024 }, (http) =>
      monitorRoutes(http, known),
    );
    registerOperations(context, known);
    context.health('uptime-monitor', () => monitors?.health());

    context.onStart(async (signal) => {
      const { services } = context;
      tokens = new PushTokens(join(services.dataDir, 'secrets', 'push'), services.logger);
      const details = options.details ?? isLoopback(host);
      monitors = new Monitors(services, settings, tokens, details);
      await tokens.load([...byName.keys()], signal);
      await monitors.watch(signal);
    });
    context.onStop(() => {
      monitors?.stop();
      tokens?.close();
    });
  },
});

/** A beat that only goes on with what was: what a crash may cost of them, the next one brings back. */
function isRoutine({ event, from, to, effects }: LogRecord): boolean {
  return (
    event.type === 'BEAT' &&
    from === 'up' &&
    to.value === 'up' &&
    effects.every(({ type }) => type.startsWith('timer.'))
  );
}
