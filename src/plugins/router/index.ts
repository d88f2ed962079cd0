/**
 * The embedded router: the config API of a router's daemon on port 8837, the store that holds the config, and the
 * kernel it is applied to. Decisions are the machine's (`machines/config-transaction.ts`); the path of a write is
 * `routes/http.ts` → `config-writes.ts` → the machine → `embedded-router.ts` → `store/` and `kernel/`.
 *
 * Imports core, bus and its machine; no other plugin. Others reach it through `core/adapters/router.ts`.
 */
import { z } from 'zod';
import { alertRaised } from '../../core/contracts/alerts.ts';
import type { ConfigStore } from '../../core/contracts/config-store.ts';
import { RouterApiToken } from '../../core/contracts/router.ts';
import { CONFIG_ACTOR, routerTransaction } from '../../core/contracts/router-transaction.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject, jsonEqual } from '../../core/kernel/json.ts';
import { readTokenFile } from '../../core/kernel/secret-file.ts';
import { configTransaction } from '../../machines/router/config.ts';
import type { TransactionContext } from '../../machines/router/config-shapes.ts';
import { inProcessApi } from './api.ts';
import { routerChecks } from './checks.ts';
import { registerCommands } from './commands/index.ts';
import { ConfigWrites } from './config-writes.ts';
import { describeConfigRecord } from './describe.ts';
import { registerEffects } from './effects.ts';
import { EmbeddedRouter } from './embedded-router.ts';
import { ensureConfig } from './first-config.ts';
import { watchCollisions } from './policy/collision-watch.ts';
import { boxParts, kernelOptions, registerBox, setUpBox } from './register-box.ts';
import { type RouterParts, routerErrorBody, routerRoutes } from './routes/http.ts';
import { SealedConfigs } from './sealed-configs.ts';
import { registerStoreConnection } from './store/connection.ts';
import { RedisBackend } from './store/redis-backend.ts';
import { redisOptions } from './store/redis-options.ts';
import { SqliteConfigStore } from './store/sqlite-config-store.ts';
import {
  CONFIG_TYPE,
  configRoutes,
  settingsChanged,
  storeLoaded,
  type TransactionSettings,
} from './topics.ts';

const options = z.strictObject({
  port: z.int().min(0).max(65_535).default(8837),
  host: z.string().min(1).default('127.0.0.1'),
  /** Names beside loopback under which the API is called, e.g. behind a proxy. */
  allowedHosts: z.array(z.string()).default([]),
  /** File (mode 0600) with the bearer token; needed as soon as `host` is not loopback. */
  tokenFile: z.string().min(1).optional(),
  /** Largest posted config, bytes. */
  bodyLimit: z
    .int()
    .min(1_024)
    .default(1024 * 1024),
  /** Until an uncommitted transaction reverts. */
  windowMs: z.int().min(100).default(120_000),
  /** Between two tries of a revert that must come about and fails. */
  retryMs: z.int().min(10).default(10_000),
  /** Writes that may wait behind the one being applied. */
  queueLimit: z.int().min(1).max(10_000).default(64),
  /** How long a request waits for its decision before it is answered that the result is unknown. */
  replyTimeoutMs: z.int().min(100).default(180_000),
  /** Accepted writes that the history keeps. */
  historyLimit: z.int().min(1).default(500),
  ...kernelOptions,
  ...redisOptions,
  /**
   * Others that announce prefixes on the legs, for `holdfast router ra`: a prefix that lies inside one of theirs has
   * two sources. The resolver pair announces ULAs; an empty list where there is none.
   */
  raSources: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        prefixes: z.array(z.cidrv6()).min(1),
        /** Seconds. */
        lifetime: z.int().min(1),
      }),
    )
    .default([{ name: 'the resolver pair', prefixes: ['fc00::/7'], lifetime: 7200 }]),
});

export const router = definePlugin({
  name: 'router',
  about: {
    area: 'Router',
    what: "the embedded router: its config's transactions, interfaces, DHCP and WAN",
    docs: 'guides/the-box-under-the-config.md',
  },
  options,
  env: { HOLDFAST_ROUTER_PORT: 'port', HOLDFAST_REDIS_URL: 'redisUrl' },
  provides: [RouterApiToken],
  register(context, settings) {
    const { port, host, allowedHosts, tokenFile, bodyLimit, windowMs, retryMs, queueLimit } = settings;
    const transactions: TransactionSettings = { windowMs, retryMs, queueLimit };
    let store: ConfigStore | undefined;
    let redis: RedisBackend | undefined;
    let started: RouterParts | undefined;
    const parts = (): RouterParts => {
      if (!started) throw new Error('the router plugin has not started');
      return started;
    };

    const token = () => (tokenFile === undefined ? undefined : readTokenFile(tokenFile));

    context.actor(
      defineActor({
        type: CONFIG_TYPE,
        machine: configTransaction,
        version: 1,
        input: () => transactions,
        describe: describeConfigRecord,
      }),
    );
    for (const route of configRoutes) context.route(route);
    registerStoreConnection(context);
    registerEffects(context, parts);
    registerBox(context, parts, settings);
    const { raSources, redisUrl } = settings;
    registerCommands(context, { token, windowMs, raSources, redisUrl });
    context.provide(RouterApiToken, () => inProcessApi(parts, context.services));
    context.health('transaction', () => {
      const { actors, clock } = context.services;
      return routerTransaction(actors.snapshot(CONFIG_ACTOR), clock.now());
    });
    context.health('store', () => redis?.health());
    context.health('box', () => {
      const fault = started?.router.fault();
      return fault === undefined
        ? undefined
        : { ok: false, reason: `the stored config is not applied: ${fault}` };
    });
    for (const check of routerChecks({ redisUrl, token })) context.check(check);
    context.http(
      {
        name: 'router',
        port,
        host,
        allowedHosts,
        portVariable: 'HOLDFAST_ROUTER_PORT',
        bodyLimit,
        errorBody: routerErrorBody,
        token,
      },
      (surface) => routerRoutes(surface, parts),
    );

    context.onStart(async (signal) => {
      const { services } = context;
      const { dataDir, vault, log, logger, bus } = services;
      const configs = new SealedConfigs(log, vault);
      const { redisUrl, historyLimit, channelPrefix, storeCheckMs, redisTimeoutMs } = settings;
      if (redisUrl !== undefined) {
        const times = { checkMs: storeCheckMs, commandTimeoutMs: redisTimeoutMs };
        redis = await RedisBackend.open({ url: redisUrl, historyLimit, channelPrefix, ...times }, services);
      }
      const configStore = redis?.store ?? (await SqliteConfigStore.open({ dataDir, vault, historyLimit }));
      store = configStore;
      const machine = () =>
        services.actors.snapshot(CONFIG_ACTOR)?.context as Partial<TransactionContext> | undefined;
      const box = new EmbeddedRouter({
        store: configStore,
        configs,
        vault,
        windowMs,
        known: (ncid) => [machine()?.active, machine()?.pending?.previous].find((one) => one?.ncid === ncid),
        ...boxParts(settings, dataDir),
      });
      const writes = new ConfigWrites(services, box, configs, settings.replyTimeoutMs);
      const pending = () => machine()?.pending;
      started = { router: box, writes, pending, published: async () => redis?.published() };
      const known = machine();
      if (isObject(known) && !jsonEqual({ ...known, ...transactions }, known))
        bus.publish(settingsChanged, transactions);

      const takeUp = async (taking: AbortSignal): Promise<void> => {
        const origin = await ensureConfig(configStore, configs, services);
        await setUpKernel(box, services, taking);
        const { event, blobs } = await box.load();
        logger.info({ ncid: event.ncid, origin }, 'router.config_loaded');
        const { type: _, ...version } = event;
        bus.publish(storeLoaded, { ...version, origin }, { blobs });
      };
      await (redis ? redis.start(takeUp, signal) : takeUp(signal));
    });
    watchCollisions(context, async () => JSON.parse((await parts().router.active()).body));
    context.onStop(() => (redis ?? store)?.close());
  },
});

/** A config that the kernel refuses must not keep the API down: it is the way to fix it. */
async function setUpKernel(box: EmbeddedRouter, services: Services, signal: AbortSignal): Promise<void> {
  const { bus, logger } = services;
  try {
    await setUpBox(box, services, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) throw error;
    logger.error({ err: error }, 'router.set_up_failed');
    bus.publish(alertRaised, {
      name: 'router.set_up_failed',
      severity: 'critical',
      text: 'The stored router config could not be applied at start. Post one that can be.',
      labels: { reason: error instanceof Error ? error.message : String(error) },
    });
  }
}
