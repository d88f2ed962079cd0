/**
 * A router elsewhere: its config API over HTTP (`remote-router.ts`), and its events by Redis pub/sub (`events.ts`). The
 * shipped configuration takes this plugin when HOLDFAST_ROUTER_URL is set. How real daemons behave, and what follows
 * from it: `docs/guides/reconcile-a-real-router.md`.
 */
import { consolePages } from '../../../core/contracts/console.ts';
import { mcpRoutes } from '../../../core/contracts/mcp-routes.ts';
import { RouterApiToken } from '../../../core/contracts/router.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { registerCommands } from '../commands/register.ts';
import { routerRoute } from '../commands/route.ts';
import type { CommandSettings } from '../commands/target.ts';
import { routerPage } from '../console-page.ts';
import { RouterError } from '../errors.ts';
import { registerObservedConfig } from '../observed-config.ts';
import { secretFields } from '../secret-fields.ts';
import { ApiWatch } from './api-watch.ts';
import { remoteChecks, remoteTransaction, withoutEvents } from './checks.ts';
import { ConfigWatch } from './config-watch.ts';
import { RouterEvents } from './events.ts';
import { type RouterRemoteOptions, routerRemoteOptions } from './options.ts';
import { RemoteRouter, routerClient } from './remote-router.ts';

/** The documented window of an uncommitted transaction. */
const WINDOW_MS = 120_000;

/**
 * The plugin `router-remote`: a router elsewhere, by its config API and its events.
 *
 * @example routerRemote({ url: 'http://192.168.1.1:8837', redisUrl: 'redis://192.168.1.1:6379', channelPrefix: 'firerouter.' })
 * @public
 */
export const routerRemote = definePlugin({
  name: 'router-remote',
  about: {
    area: 'Router',
    what: 'a router elsewhere, by its config API and its events',
    docs: 'guides/reconcile-a-real-router.md',
  },
  options: routerRemoteOptions,
  secretFields,
  env: {
    HOLDFAST_ROUTER_URL: 'url',
    HOLDFAST_ROUTER_INSECURE: 'insecure',
    HOLDFAST_REDIS_URL: 'redisUrl',
    HOLDFAST_ROUTER_CHANNEL_PREFIX: 'channelPrefix',
  },
  variables: {
    HOLDFAST_ROUTER_URL: 'Config API of a router elsewhere, in the place of the embedded one.',
    HOLDFAST_ROUTER_INSECURE: 'Whether a token may go to it over http; not unless `true`.',
    HOLDFAST_REDIS_URL: 'The Redis on which that router publishes.',
    HOLDFAST_ROUTER_CHANNEL_PREFIX: 'Prefix of its channels.',
  },
  errors: RouterError,
  provides: [RouterApiToken],
  async start({ actors, bus, clock, dataDir, logger, metrics, vault }, options) {
    const { url, insecure, redisUrl, channelPrefix, pingMs, alertAfterMs, answerLimit } = options;
    const { readTimeoutMs, writeTimeoutMs, lookMs, probeMs } = options;
    const calls = metrics.counter('router_calls_total', {
      help: "Calls of a router's config API, by whether a usable answer came.",
      labels: ['call', 'outcome'],
    });
    const lastCalls: { read?: JsonObject; write?: JsonObject } = {};
    const services = { bus, clock, logger, metrics };
    const http = routerClient(url, { answerLimit, clock, insecure });
    const watch = new ApiWatch({
      read: (timeoutMs) => api.active(undefined, timeoutMs),
      ...{ url, lookMs, probeMs, alertAfterMs, ...services },
    });
    const events =
      redisUrl === undefined
        ? undefined
        : new RouterEvents({
            ...{ redisUrl, channelPrefix, pingMs, alertAfterMs, ...services },
            onHeard: () => watch.heard(),
          });
    const configs = new ConfigWatch({ actors, bus, clock, logger, vault }, redisUrl);
    const api = new RemoteRouter({
      url,
      http,
      observer: watch,
      onConfig: (config) => configs.seen(config),
      token: tokenOf(options),
      isSubscribed: () => events?.isSubscribed === true,
      readTimeoutMs,
      writeTimeoutMs,
      onCall(call, fault) {
        calls.inc({ call, outcome: fault === undefined ? 'answered' : 'unknown' });
        const at = new Date(clock.now()).toISOString();
        lastCalls[call] = fault === undefined ? { at } : { at, fault };
      },
    });
    if (events) await events.start();
    else {
      logger.warn({ reason: withoutEvents(lookMs) }, 'router.events_off');
    }
    watch.start();
    return { http, api, events, watch, configs, lastCalls, dataDir };
  },
  register(context, options) {
    context.provide(RouterApiToken, ({ api }) => api);
    context.health('router', ({ events, watch, lastCalls }) => ({
      ok: lastCalls.read?.fault === undefined && events?.isSubscribed !== false,
      url: options.url,
      ...watch.status(),
      events: events?.status() ?? { subscribed: false, fault: 'no HOLDFAST_REDIS_URL is set' },
      ...lastCalls,
    }));
    for (const check of remoteChecks(options, tokenOf(options))) context.check(check);
    const { url, insecure, redisUrl, raSources } = options;
    const commands: CommandSettings = {
      url,
      insecure,
      token: tokenOf(options),
      windowMs: WINDOW_MS,
      raSources,
      readStore: async (dataDir, read) =>
        (await import('./read-store.ts')).readRemoteStore({ url, dataDir, redisUrl }, read),
    };
    registerCommands(context, commands);
    context.contribute(mcpRoutes, ({ dataDir }) =>
      routerRoute(commands, dataDir, (signal) => remoteTransaction(options, tokenOf(options), signal)),
    );
    registerObservedConfig(context);
    context.contribute(consolePages, routerPage);
    context.onStop(async ({ http, events, watch, configs }) => {
      configs.stop();
      watch.stop();
      events?.stop();
      await http.close();
    });
  },
});

/** Reads the bearer token at each call. */
function tokenOf({ tokenFile }: RouterRemoteOptions): () => string | undefined {
  return () => (tokenFile === undefined ? undefined : readTokenFile(tokenFile));
}
