/**
 * The push client: beats go by HTTP to an uptime monitor, Uptime Kuma or whatever has its push contract; without one
 * (HOLDFAST_UPTIME_URL) to the embedded one, by the same way. `push-client.ts` sends, `answer.ts` says what an answer
 * means, `tokens.ts` reads the token at each push, `by-hand.ts` keeps what a push by hand was answered.
 *
 * Imports core; no other plugin.
 */

import { ClusterToken } from '../../core/contracts/cluster.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { monitorBase } from './base.ts';
import { registerByHand } from './by-hand.ts';
import { registerClusterLook } from './cluster-look.ts';
import { pushDoctor } from './commands/doctor.ts';
import { push } from './commands/push.ts';
import { UptimeError } from './errors.ts';
import { uptimeOptions } from './options.ts';
import { PushClient } from './push-client.ts';
import { readPushToken } from './tokens.ts';

/** @example uptime({ url: 'https://status.example.org', connect: '10.0.0.8:443' }) */
export const uptime = definePlugin({
  name: 'uptime',
  about: {
    area: 'Uptime and alerts',
    what: 'pushes beats to a monitor',
    docs: 'uptime.md',
  },
  options: uptimeOptions,
  env: { HOLDFAST_UPTIME_URL: 'url', HOLDFAST_UPTIME_CONNECT: 'connect' },
  variables: {
    HOLDFAST_UPTIME_URL: 'Uptime monitor that beats go to; the embedded one unless set.',
    HOLDFAST_UPTIME_CONNECT: 'Address to connect to, where it is not that of the URL.',
  },
  errors: UptimeError,
  wants: [SecretsStoreToken, ClusterToken],
  provides: [UptimeMonitorToken],
  start({ actors, clock, dataDir, find }, { url, connect, caFile, timeoutMs, monitors }) {
    const store = find(SecretsStoreToken);
    const client = new PushClient({
      base: () => monitorBase(url, dataDir, process.pid),
      connect: url === undefined ? undefined : connect,
      caFile,
      timeoutMs,
      clock,
      token: (monitor) => readPushToken(monitor, { dataDir, monitors, store: () => store }),
    });
    return { actors, clock, client, cluster: find(ClusterToken) };
  },
  register(context, options) {
    context.command(push(options));
    context.command(pushDoctor(options));
    context.provide(UptimeMonitorToken, ({ client }) => client);
    registerByHand(context);
    registerClusterLook(context);
  },
});
