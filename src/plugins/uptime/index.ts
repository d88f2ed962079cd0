/**
 * The push client: sends beats to an uptime monitor with Uptime Kuma's push contract, or to the embedded one when no
 * HOLDFAST_UPTIME_URL is set. `push-client.ts` sends and interprets answers, `tokens.ts` reads the token at each push,
 * `manual-push.ts` is `holdfast push`, `doctor.ts` finds out why beats do not arrive.
 */
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { registerClusterStatus } from './cluster-status.ts';
import { pushDoctor } from './doctor.ts';
import { UptimeError } from './errors.ts';
import { pushCommand, registerManualPush } from './manual-push.ts';
import { uptimeOptions } from './options.ts';
import { PushClient } from './push-client.ts';
import { tokenAccess } from './token-access.ts';
import { monitorPlace, readPushToken } from './tokens.ts';

/**
 * The plugin `uptime`: sends beats to an uptime monitor.
 *
 * @example uptime({ url: 'https://status.example.org', connect: '10.0.0.8:443' })
 * @public
 */
export const uptime = definePlugin({
  name: 'uptime',
  about: {
    area: 'Uptime and alerts',
    what: 'sends beats to an uptime monitor',
    docs: 'uptime.md',
  },
  options: uptimeOptions,
  env: {
    HOLDFAST_UPTIME_URL: 'url',
    HOLDFAST_UPTIME_CONNECT: 'connect',
    HOLDFAST_UPTIME_INSECURE: 'insecure',
  },
  variables: {
    HOLDFAST_UPTIME_URL: 'Uptime monitor that beats go to; the embedded one unless set.',
    HOLDFAST_UPTIME_CONNECT: 'Address to connect to, where it is not that of the URL.',
    HOLDFAST_UPTIME_INSECURE: 'Whether push tokens may go to another machine over http; not unless `true`.',
  },
  errors: UptimeError,
  wants: [SecretsStoreToken, KubernetesToken],
  provides: [UptimeMonitorToken],
  start({ actors, clock, dataDir, find }, { url, connect, caFile, insecure, timeoutMs, monitors }) {
    const store = find(SecretsStoreToken);
    const client = new PushClient({
      place: () => monitorPlace(url, dataDir, process.pid),
      connect: url === undefined ? undefined : connect,
      caFile,
      // The embedded monitor is on this machine, whatever address it is bound to.
      insecure: insecure ?? url === undefined,
      timeoutMs,
      clock,
      token: (monitor) => readPushToken(monitor, { dataDir, monitors, store }),
      access: (monitor) => tokenAccess(monitor, { dataDir, monitors, store }),
    });
    return { actors, clock, client, cluster: find(KubernetesToken) };
  },
  register(context, options) {
    context.command(pushCommand(options));
    context.command(pushDoctor(options));
    context.provide(UptimeMonitorToken, ({ client }) => client);
    registerManualPush(context);
    registerClusterStatus(context);
  },
});
