/**
 * The start of the embedded router. The store is opened, kernel and files are brought to the config that it holds, and
 * the config actor is sent what was read. With Redis the same happens again at every reconnect, and whenever somebody
 * else has written there. Loaded when the plugin starts: commands and other configurations need none of it.
 */
import { isAbsolute, join } from 'node:path';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import type { ConfigStore } from '../../../core/contracts/config-store.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { jsonEqual } from '../../../core/kernel/json.ts';
import { CollisionWatch, type PacketFilter, publishAddresses, publishSets } from './address-sets.ts';
import { CONFIG_KEY, configActor, settingsChanged, storeLoaded } from './config-actor.ts';
import { ConfigWrites } from './config-writes.ts';
import { dhcpRewritten } from './dhcp.ts';
import type { DhcpServer } from './dhcp-server.ts';
import { EmbeddedRouter, type RouterAccess } from './embedded-router.ts';
import { ensureConfig } from './first-config.ts';
import { GeneratedFolder } from './generated-folder.ts';
import type { KernelDriver } from './kernel/driver.ts';
import type { KernelWatch } from './kernel/watch.ts';
import type { RouterOptions } from './options.ts';
import { SealedConfigs } from './sealed-configs.ts';
import type { SetWatch } from './set-watch.ts';
import { RedisBackend } from './store/redis-backend.ts';
import { SqliteConfigStore } from './store/sqlite-config-store.ts';
import { knownWans } from './wan.ts';

/** What the plugin's handlers use. */
export interface RouterServices extends RouterAccess {
  readonly writes: ConfigWrites;
  readonly collisions: CollisionWatch;
  /** Where the config is kept in Redis. */
  readonly redis: RedisBackend | undefined;
  /** Watches a real kernel. */
  readonly watch: KernelWatch | undefined;
  /** The DHCP service, where it is a real one. */
  readonly dhcpServer: DhcpServer | undefined;
  /** Where address sets are filled; undefined where they are a model. */
  readonly packetFilter: PacketFilter | undefined;
  close(): Promise<void>;
}

/**
 * @param signal gives the start up
 * @throws HF_ROUTER_STORE the store cannot be opened, HF_REDIS_URL, HF_ROUTER_STORE_DATABASE
 */
export async function startRouter(
  services: Services,
  options: RouterOptions,
  signal: AbortSignal,
): Promise<RouterServices> {
  const { dataDir, vault, log, actors, bus, logger } = services;
  const { redisUrl, historyLimit, channelPrefix, storeCheckMs, redisTimeoutMs } = options;
  let redis: RedisBackend | undefined;
  if (redisUrl !== undefined) {
    const times = { checkMs: storeCheckMs, commandTimeoutMs: redisTimeoutMs };
    redis = await RedisBackend.open({ url: redisUrl, historyLimit, channelPrefix, ...times }, services);
  }
  const store: ConfigStore = redis?.store ?? (await SqliteConfigStore.open({ dataDir, vault, historyLimit }));
  const close = () => (redis ?? store).close();
  try {
    const { windowMs, retryMs, queueLimit, replyTimeoutMs, generatedDir } = options;
    const configs = new SealedConfigs(log, vault);
    const storedContext = () => actors.get(configActor, CONFIG_KEY)?.context;
    const kernel = await kernelOf(options);
    const root = isAbsolute(generatedDir) ? generatedDir : join(dataDir, generatedDir);
    const router = new EmbeddedRouter({
      store,
      configs,
      vault,
      windowMs,
      versionOf: (ncid) =>
        [storedContext()?.active, storedContext()?.pending?.previous].find((one) => one?.ncid === ncid),
      kernel,
      files: new GeneratedFolder(root),
    });

    const settings = { windowMs, retryMs, queueLimit };
    const before = storedContext();
    if (before && !jsonEqual({ ...before, ...settings }, before)) bus.publish(settingsChanged, settings);
    const takeUp = async (taking: AbortSignal): Promise<void> => {
      const origin = await ensureConfig(store, configs, services);
      await setUp(router, services, taking);
      const { event, blobs } = await router.load();
      logger.info({ ncid: event.ncid, origin }, 'router.config_loaded');
      const { type: _, ...version } = event;
      bus.publish(storeLoaded, { ...version, origin }, { blobs });
    };
    await (redis ? redis.start(takeUp, signal) : takeUp(signal));

    const collisions = new CollisionWatch();
    await collisions.start(router, services);
    const writes = new ConfigWrites(services, router, configs, { replyTimeoutMs, queueLimit });
    const watch = await watchOf(kernel, router, services, options);
    watch?.start();
    const dhcpServer = await dhcpServerOf(root, services, options);
    await dhcpServer?.start();
    const packetFilter = await packetFilterOf(options);
    // Not waited for: a tool that hangs must not keep the router from starting.
    if (packetFilter) void publishSets(packetFilter, services);
    const setWatch = packetFilter && (await setWatchOf(packetFilter, services, options));
    setWatch?.start();
    if (!packetFilter && options.kernel === 'linux') logger.warn({}, 'router.sets_are_a_model');
    const stop = async () => {
      await Promise.all([watch?.stop(), dhcpServer?.stop(), setWatch?.stop()]);
      await close();
    };
    return { services, router, writes, collisions, redis, watch, dhcpServer, packetFilter, close: stop };
  } catch (error) {
    await close();
    throw error;
  }
}

async function kernelOf({ kernel, namespace }: RouterOptions): Promise<KernelDriver> {
  if (kernel === 'memory') return new (await import('./kernel/memory.ts')).MemoryKernel();
  return new (await import('./kernel/linux.ts')).LinuxKernel({ namespace });
}

/** @returns undefined for the model of a kernel, which changes only through the router */
async function watchOf(
  kernel: KernelDriver,
  router: EmbeddedRouter,
  services: Services,
  options: RouterOptions,
): Promise<KernelWatch | undefined> {
  if (options.kernel === 'memory') return undefined;
  const { LinuxKernel } = await import('./kernel/linux.ts');
  if (!(kernel instanceof LinuxKernel)) return undefined;
  const [{ KernelWatch }, { KernelEvents }] = await Promise.all([
    import('./kernel/watch.ts'),
    import('./kernel-events.ts'),
  ]);
  const events = new KernelEvents(router, services);
  const { clock, logger } = services;
  return new KernelWatch({
    namespace: options.namespace,
    clock,
    logger,
    read: () => router.whenIdle(() => kernel.snapshot()),
    onChange: (now) => events.follow(now),
  });
}

/** @returns undefined with a model of a kernel, which no client could reach */
async function dhcpServerOf(
  root: string,
  { clock, bus, logger }: Services,
  { kernel, namespace, dnsmasq = true }: RouterOptions,
): Promise<DhcpServer | undefined> {
  if (kernel === 'memory' || !dnsmasq) return undefined;
  const { DhcpServer } = await import('./dhcp-server.ts');
  return new DhcpServer({ root, namespace, clock, bus, logger });
}

/** @returns undefined with a model of a kernel, and where no tool is installed */
async function packetFilterOf({
  kernel,
  namespace,
  packetFilter,
}: RouterOptions): Promise<PacketFilter | undefined> {
  if (kernel === 'memory' || packetFilter === 'none') return undefined;
  const { installedSetTool } = await import('../host/set-tools.ts');
  const tool = packetFilter ?? installedSetTool();
  return tool && { tool, namespace };
}

async function setWatchOf(
  packetFilter: PacketFilter,
  services: Services,
  { addressSetsMs }: RouterOptions,
): Promise<SetWatch> {
  const { SetWatch } = await import('./set-watch.ts');
  return new SetWatch(packetFilter, services, addressSetsMs);
}

/**
 * Brings kernel and files to the persisted config, and publishes what a kill left unpublished. A config that the kernel
 * refuses must not keep the API down, because the API is how it is corrected.
 *
 * @throws HF_ROUTER_STORE_UNAVAILABLE
 */
async function setUp(router: EmbeddedRouter, services: Services, signal: AbortSignal): Promise<void> {
  const { actors, bus, logger } = services;
  try {
    const legs = await router.setUp(signal, knownWans(services));
    // At the very first start everything is written, and the service has not run with anything else.
    if (legs.length > 0 && actors.get(configActor, CONFIG_KEY)) bus.publish(dhcpRewritten, { legs });
    await publishAddresses(router, services);
  } catch (error) {
    signal.throwIfAborted();
    if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) throw error;
    logger.error({ err: error }, 'router.set_up_failed');
    bus.publish(alertRaised, {
      name: 'router.set_up_failed',
      severity: 'critical',
      text: 'The stored router config could not be applied at the start. Post a config that can be applied.',
      labels: { reason: error instanceof Error ? error.message : String(error) },
    });
  }
}
