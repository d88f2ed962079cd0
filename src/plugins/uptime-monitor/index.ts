/**
 * The embedded uptime monitor (port 3001): push monitors with Uptime Kuma's push contract, one actor each
 * (`machines/uptime-monitor/monitor.ts`), and status pages. `take-push.ts` takes a beat, `monitors.ts` holds the listed
 * monitors, `view.ts` describes one, `page.ts` and `kuma.ts` show it.
 */
import { join } from 'node:path';
import { consolePages } from '../../core/contracts/console.ts';
import { runTrouble } from '../../core/contracts/uptime.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { listeningOf } from '../../core/host/http/listen-options.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { monitorActor } from './actor.ts';
import { monitorsPage } from './console-page.ts';
import { UptimeMonitorError } from './errors.ts';
import { Monitors } from './monitors.ts';
import { registerOperations } from './operate.ts';
import { monitorSettings, uptimeMonitorOptions } from './options.ts';
import { PushTokens } from './push-tokens.ts';
import { monitorRoutes } from './routes.ts';

/**
 * The plugin `uptime-monitor`: the embedded monitor of beats, with status pages.
 *
 * @example uptimeMonitor({ monitors: [{ name: 'backup', interval: 86_400, retries: 1, retryInterval: 3_600 }] })
 * @public
 */
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
  hostBound: true,
  async start(services, options, signal) {
    const settings = monitorSettings(options);
    const tokens = new PushTokens(join(services.dataDir, 'secrets', 'push'), services.logger);
    const details = options.details ?? isLoopback(options.host);
    const monitors = new Monitors(services, settings, tokens, details);
    const stop = () => {
      monitors.stop();
      tokens.close();
    };
    try {
      await tokens.load(
        settings.map(({ name }) => name),
        signal,
      );
      await monitors.watch(signal);
    } catch (error) {
      stop();
      throw error;
    }
    return { monitors, stop };
  },
  register(context, options) {
    const byName = new Map(monitorSettings(options).map((each) => [each.name, each]));
    context.actor({ ...monitorActor, input: (key) => byName.get(key) });
    context.route(runTrouble, monitorActor, ({ payload: { monitor, ...trouble } }) =>
      byName.has(monitor) ? [{ key: monitor, event: { type: 'TROUBLE', trouble } }] : [],
    );
    // Where other machines can read the pages they give no reasons. A push has its token in its path.
    const surface = {
      name: 'uptime',
      portVariable: 'HOLDFAST_UPTIME_PORT',
      readOnly: true,
      ...listeningOf(options),
    };
    context.http({ ...surface, bodyLimit: 64 * 1024 }, (http, { monitors }) => monitorRoutes(http, monitors));
    registerOperations(context);
    context.contribute(consolePages, monitorsPage);
    context.health('uptime-monitor', ({ monitors }) => monitors.health());
    context.onStop(({ stop }) => stop());
  },
});
