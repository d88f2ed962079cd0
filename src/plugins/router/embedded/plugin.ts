/**
 * The embedded router: the config API of a router's daemon on port 8837, the store that holds the config, and the
 * kernel it is applied to. Decisions are the machine's (`machines/config-transaction.ts`); the path of a write is
 * `routes/http.ts` → `config-writes.ts` → the machine → `embedded-router.ts` → `store/` and `kernel/`.
 *
 * Imports core, bus and its machine; no other plugin. Others reach it through `core/adapters/router.ts`.
 */

import { isAbsolute, join } from 'node:path';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import type { ConfigStore } from '../../../core/contracts/config-store.ts';
import { RouterApiToken } from '../../../core/contracts/router.ts';
import { definePlugin, type PluginContext, type Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, jsonEqual } from '../../../core/kernel/json.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { routerConfig } from '../../../machines/router/config.ts';
import type { ConfigContext } from '../../../machines/router/config-shapes.ts';
import { registerCommands } from '../commands/register.ts';
import { TRANSACTION_PATH } from '../commands/target.ts';
import { networkConfigSecrets } from '../config/secrets.ts';
import { RouterError } from '../errors.ts';
import { registerAddressSets, registerSetsControl, tellAddresses, watchCollisions } from './address-sets.ts';
import type { BoxParts } from './applier.ts';
import { routerChecks } from './checks.ts';
import {
  CONFIG_TYPE,
  configRoutes,
  describeConfigRecord,
  registerEffects,
  settingsChanged,
  storeLoaded,
  type TransactionSettings,
} from './config-actor.ts';
import { ConfigWrites, inProcessApi } from './config-writes.ts';
import { dhcpRewritten, registerDhcpService } from './dhcp.ts';
import { EmbeddedRouter } from './embedded-router.ts';
import { GeneratedFolder } from './generated-folder.ts';
import { type RouterParts, routerErrorBody, routerRoutes } from './http-api.ts';
import { LinuxKernel } from './kernel/linux.ts';
import { MemoryKernel } from './kernel/memory.ts';
import { type RouterOptions, routerOptions } from './options.ts';
import { CONFIG_ACTOR, pendingTransaction, stoppedTransaction } from './pending-transaction.ts';
import { ensureConfig, SealedConfigs } from './sealed-configs.ts';
import { registerSimulateCommand, registerSimulations } from './simulate.ts';
import { registerStoreConnection } from './store/connection.ts';
import { RedisBackend } from './store/redis-backend.ts';
import { SqliteConfigStore } from './store/sqlite-config-store.ts';
import { knownWans, registerWans } from './wan.ts';

export const router = definePlugin({
  name: 'router',
  about: {
    area: 'Router',
    what: "the embedded router: its config's transactions, interfaces, DHCP and WAN",
    docs: 'guides/the-box-under-the-config.md',
  },
  options: routerOptions,
  secretFields: networkConfigSecrets,
  env: { HOLDFAST_ROUTER_PORT: 'port', HOLDFAST_REDIS_URL: 'redisUrl' },
  errors: RouterError,
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
        machine: routerConfig,
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
    registerCommands(context, {
      token,
      windowMs,
      raSources,
      readStore: async (dataDir, read) =>
        (await import('./store/read-store.ts')).readStore({ dataDir, redisUrl }, read),
    });
    context.provide(RouterApiToken, () => inProcessApi(parts, context.services));
    const transaction = () => {
      const { actors, clock } = context.services;
      return pendingTransaction(actors.snapshot(CONFIG_ACTOR), clock.now());
    };
    context.health('transaction', transaction, stoppedTransaction);
    context.control((surface) => surface.post(TRANSACTION_PATH, async () => transaction() ?? {}));
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
        tryPath: '/v1/config/active',
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
        services.actors.snapshot(CONFIG_ACTOR)?.context as Partial<ConfigContext> | undefined;
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

function boxParts({ kernel, namespace, generatedDir }: RouterOptions, dataDir: string): Required<BoxParts> {
  const root = isAbsolute(generatedDir) ? generatedDir : join(dataDir, generatedDir);
  return {
    kernel: kernel === 'linux' ? new LinuxKernel({ namespace }) : new MemoryKernel(),
    files: new GeneratedFolder(root),
  };
}

/** Registers what follows from the box: DHCP service, address sets, WANs, and their simulation. */
function registerBox(context: PluginContext, parts: () => RouterParts, settings: RouterOptions): void {
  const { kernel, namespace, dhcpRestartMs, addressSetsMs, replyTimeoutMs } = settings;
  registerDhcpService(context, parts, dhcpRestartMs);
  registerAddressSets(context, addressSetsMs);
  registerSetsControl(context);
  registerWans(context, parts);
  registerSimulations(context, parts, {
    isReal: kernel === 'linux' && namespace === undefined,
    replyTimeoutMs,
  });
  registerSimulateCommand(context);
}

/** Brings the box to the persisted config, and tells those who follow it what a kill left undone. */
async function setUpBox(router: EmbeddedRouter, services: Services, signal: AbortSignal): Promise<void> {
  const legs = await router.setUp(signal, knownWans(services));
  // At the very first start everything is written, and the service has not run with anything else.
  if (legs.length > 0 && services.actors.list(CONFIG_TYPE).length > 0) {
    services.bus.publish(dhcpRewritten, { legs });
  }
  await tellAddresses(router, services);
}
