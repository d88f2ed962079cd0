/**
 * A router elsewhere: its config API over HTTP (`remote-router.ts`), and its events by Redis pub/sub (`events.ts`). The
 * shipped configuration takes this plugin when HOLDFAST_ROUTER_URL is set. How real daemons behave, and what follows
 * from it: `docs/guides/reconcile-a-real-router.md`.
 */
import { z } from 'zod';
import { RouterApiToken } from '../../../core/contracts/router.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { parseRedisUrl } from '../../../core/host/redis/url.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { RouterError } from '../errors.ts';
import { remoteChecks } from './checks.ts';
import { RouterEvents } from './events.ts';
import { RemoteRouter, routerClient } from './remote-router.ts';

function isHttp(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
}

const routerUrl = z
  .string({
    error: ({ input }) =>
      input === undefined
        ? 'it is required: set HOLDFAST_ROUTER_URL, e.g. http://192.168.1.1:8837'
        : undefined,
  })
  .refine(isHttp, 'it must be the base of the router API, e.g. http://192.168.1.1:8837')
  .refine((text) => !URL.canParse(text) || !/[@?#]/.test(text), 'it must hold no user, query or fragment');

const redisUrl = z
  .string()
  .refine(
    (text) => parseRedisUrl(text) !== undefined,
    'it must be the URL of a Redis, e.g. redis://192.168.1.1:6379',
  );

/** Times are milliseconds, sizes bytes. */
const routerRemoteOptions = z.strictObject({
  /** Base of the router's API. */
  url: routerUrl,
  /** File (mode 0600) with a bearer token, read at each call; a router on loopback, and a real daemon, ask for none. */
  tokenFile: z.string().min(1).optional(),
  /** The Redis that the router publishes on. Without it a save is found by the resync only. */
  redisUrl: redisUrl.optional(),
  /** What stands before `iface_change_applied` and the others; `firerouter.` on some daemons. */
  channelPrefix: z
    .string()
    .regex(/^[\w.:-]*$/, 'it may hold letters, digits, and . : _ -')
    .default('router.'),
  /** Until a read is given up. */
  readTimeoutMs: z.int().min(100).max(120_000).default(15_000),
  /** Until the outcome of a write is unknown. An apply takes eight seconds and more, so keep it well over 60,000. */
  writeTimeoutMs: z.int().min(100).max(600_000).default(85_000),
  /** Largest answer that is read. */
  answerLimit: z
    .int()
    .min(1_024)
    .default(8 * 1024 * 1024),
  /** Between two pings of Redis: a cut cable is not noticed otherwise. */
  pingMs: z.int().min(100).default(15_000),
  /** After so long without a subscription an alert is raised. */
  alertAfterMs: z.int().min(100).default(60_000),
});

export type RouterRemoteOptions = z.output<typeof routerRemoteOptions>;

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
  variables: {
    HOLDFAST_ROUTER_URL: 'Config API of a router elsewhere, in the place of the embedded one.',
    HOLDFAST_REDIS_URL: 'The Redis on which that router publishes.',
    HOLDFAST_ROUTER_CHANNEL_PREFIX: 'Prefix of its channels.',
  },
  errors: RouterError,
  provides: [RouterApiToken],
  async start({ bus, clock, logger, metrics }, options) {
    const { url, redisUrl, channelPrefix, pingMs, alertAfterMs, answerLimit } = options;
    const { readTimeoutMs, writeTimeoutMs } = options;
    const calls = metrics.counter('router_calls_total', {
      help: "Calls of a router's config API, by whether a usable answer came.",
      labels: ['call', 'outcome'],
    });
    const lastCalls: { read?: JsonObject; write?: JsonObject } = {};
    const services = { bus, clock, logger, metrics };
    const events =
      redisUrl === undefined
        ? undefined
        : new RouterEvents({ redisUrl, channelPrefix, pingMs, alertAfterMs, ...services });
    const http = routerClient(url, answerLimit, clock);
    const api = new RemoteRouter({
      http,
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
      const reason = 'no HOLDFAST_REDIS_URL: a save is found by the resync (every 240 s), not by its event';
      logger.warn({ reason }, 'router.events_off');
    }
    return { http, api, events, lastCalls };
  },
  register(context, options) {
    context.provide(RouterApiToken, ({ api }) => api);
    context.health('router', ({ events, lastCalls }) => ({
      ok: lastCalls.read?.fault === undefined && events?.isSubscribed !== false,
      url: options.url,
      events: events?.status() ?? { subscribed: false, fault: 'no HOLDFAST_REDIS_URL is set' },
      ...lastCalls,
    }));
    for (const check of remoteChecks(options, tokenOf(options))) context.check(check);
    context.onStop(async ({ http, events }) => {
      events?.stop();
      await http.close();
    });
  },
});

/** Reads the bearer token at each call. */
function tokenOf({ tokenFile }: RouterRemoteOptions): () => string | undefined {
  return () => (tokenFile === undefined ? undefined : readTokenFile(tokenFile));
}
