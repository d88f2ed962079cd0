/**
 * A router elsewhere: its config API over HTTP (`remote-router.ts`), and its events by Redis pub/sub
 * (`router-events.ts`). It provides the same token as the embedded router, so one of the two is enabled; the shipped
 * configuration takes this one when HOLDFAST_ROUTER_URL is set. How real daemons behave, and what is made of it:
 * `docs/guides/reconcile-a-real-router.md`.
 *
 * Imports core and bus; no other plugin.
 */
import { RouterApiToken } from '../../../core/contracts/router.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { remoteChecks } from './checks.ts';
import { Exchange } from './exchange.ts';
import { routerRemoteOptions } from './options.ts';
import { RemoteRouter } from './remote-router.ts';
import { RouterEvents } from './router-events.ts';

/** @example routerRemote({ url: 'http://192.168.1.1:8837', redisUrl: 'redis://192.168.1.1:6379', channelPrefix: 'firerouter.' }) */
export const routerRemote = definePlugin({
  name: 'router-remote',
  about: {
    area: 'Router',
    what: 'a router elsewhere, by its config API and its events',
    docs: 'guides/reconcile-a-real-router.md',
  },
  options: routerRemoteOptions,
  env: {
    HOLDFAST_ROUTER_URL: 'url',
    HOLDFAST_REDIS_URL: 'redisUrl',
    HOLDFAST_ROUTER_CHANNEL_PREFIX: 'channelPrefix',
  },
  provides: [RouterApiToken],
  register(context, options) {
    const { url, redisUrl, tokenFile, channelPrefix, pingMs, alertAfterMs, answerLimit } = options;
    let exchange: Exchange | undefined;
    let events: RouterEvents | undefined;
    const token = () => (tokenFile === undefined ? undefined : readTokenFile(tokenFile));
    const last: { read?: JsonObject; write?: JsonObject } = {};

    context.provide(RouterApiToken, () => {
      const { clock, metrics } = context.services;
      const calls = metrics.counter('router_calls_total', {
        help: "Calls of a router's config API, by whether a usable answer came.",
        labels: ['call', 'outcome'],
      });
      exchange = new Exchange({ url, clock, token, answerLimit });
      return new RemoteRouter({
        exchange,
        isHeard: () => events?.isSubscribed === true,
        readTimeoutMs: options.readTimeoutMs,
        writeTimeoutMs: options.writeTimeoutMs,
        observe(call, fault) {
          calls.inc({ call, outcome: fault === undefined ? 'answered' : 'unknown' });
          const at = new Date(clock.now()).toISOString();
          last[call] = fault === undefined ? { at } : { at, fault };
        },
      });
    });

    for (const check of remoteChecks(options, token)) context.check(check);
    context.health('router', () => ({
      ok: last.read?.fault === undefined && events?.isSubscribed !== false,
      url,
      events: events?.status() ?? { subscribed: false, fault: 'no HOLDFAST_REDIS_URL is set' },
      ...last,
    }));

    context.onStart(async () => {
      const { bus, clock, logger, metrics } = context.services;
      if (redisUrl === undefined) {
        const reason = 'no HOLDFAST_REDIS_URL: a save is found by the resync (every 240 s), not by its event';
        logger.warn({ reason }, 'router.events_off');
        return;
      }
      events = new RouterEvents({
        redisUrl,
        channelPrefix,
        pingMs,
        alertAfterMs,
        bus,
        clock,
        logger,
        metrics,
      });
      await events.start();
    });
    context.onStop(async () => {
      events?.stop();
      await exchange?.close();
    });
  },
});
