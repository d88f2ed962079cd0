import type { Logger } from 'pino';
import type { Bus } from '../../../../bus/bus.ts';
import { alertRaised } from '../../../../core/contracts/alerts.ts';
import { routerChannels, routerConnected } from '../../../../core/contracts/router.ts';
import type { Services } from '../../../../core/host/plugin/definition.ts';
import { RedisClient, RedisFault } from '../../../../core/host/redis/client.ts';
import { parseRedisUrl } from '../../../../core/host/redis/url.ts';
import { isCoded } from '../../../../core/kernel/errors/holdfast-error.ts';
import type { EpochMs } from '../../../../core/kernel/ids.ts';
import type { Json } from '../../../../core/kernel/json.ts';
import { RouterError } from '../../errors.ts';
import { CONFIG_DATABASE, diagnoseRedis } from '../../redis.ts';
import { storeConnectionChanged } from './connection.ts';
import { RedisConfigStore } from './redis-config-store.ts';

export interface RedisBackendOptions {
  readonly url: string;
  readonly historyLimit: number;
  readonly channelPrefix: string;
  /** Between two readings that find out whether another program wrote the store, milliseconds. */
  readonly checkMs: number;
  readonly commandTimeoutMs: number;
}

/** Applies the stored config to kernel and machine, and gives an empty store its first config. */
export type TakeUp = (signal: AbortSignal) => Promise<void>;

/** How long a start waits for Redis before it goes on without. */
const START_WAIT_MS = 2_000;
const OWNER = 'router';

/**
 * A Redis as the router's store: follows the connection, and detects what other programs write there. While
 * it is away, reads and writes are answered as unavailable; when it comes (back), its content is loaded.
 */
export class RedisBackend {
  readonly store: RedisConfigStore;
  readonly #client: RedisClient;
  readonly #channels: RedisChannels;
  readonly #options: RedisBackendOptions;
  readonly #services: Pick<Services, 'bus' | 'clock' | 'logger' | 'vault'>;
  readonly #stopped = new AbortController();
  #takeUp: TakeUp = async () => {};
  #since: EpochMs;
  /** The store must be loaded; set until that has succeeded. */
  #isDue = false;
  #running: Promise<void> | undefined;
  #cancelCheck = () => {};
  #fault: string | undefined;

  private constructor(
    options: RedisBackendOptions,
    services: Pick<Services, 'bus' | 'clock' | 'logger' | 'vault'>,
    client: RedisClient,
  ) {
    const { bus, clock, logger } = services;
    this.#options = options;
    this.#services = services;
    this.#client = client;
    this.#since = clock.now();
    this.#channels = new RedisChannels({ client, bus, logger, prefix: options.channelPrefix });
    this.store = new RedisConfigStore({
      client,
      historyLimit: options.historyLimit,
      vault: () => services.vault,
      onForeign: () => void this.#due(),
    });
  }

  /** @throws HF_REDIS_URL */
  static async open(
    options: RedisBackendOptions,
    services: Pick<Services, 'bus' | 'clock' | 'logger' | 'vault'>,
  ): Promise<RedisBackend> {
    const { url, commandTimeoutMs } = options;
    const client = await RedisClient.open({ url, name: 'holdfast-router', commandTimeoutMs });
    return new RedisBackend(options, services, client);
  }

  /**
   * Loads the store, and again at every reconnect and whenever another program has written it. Without a Redis it
   * returns after a moment, and loads the store when Redis can be reached.
   *
   * @throws HF_ROUTER_STORE_DATABASE the URL names another database than the documents
   */
  async start(takeUp: TakeUp, signal: AbortSignal): Promise<void> {
    await this.#rightDatabase();
    this.#takeUp = takeUp;
    this.#channels.start(OWNER);
    const { clock } = this.#services;
    let isConnected = await this.#client.ready(START_WAIT_MS, signal);
    signal.throwIfAborted();
    if (isConnected) {
      try {
        await takeUp(signal);
      } catch (error) {
        if (!isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) throw error;
        isConnected = false;
      }
    }
    this.#since = clock.now();
    if (isConnected) this.#connected();
    else {
      this.#isDue = true;
      this.#lost(this.#client.state().reason ?? '');
    }
    this.#client.onLost((reason) => this.#lost(reason));
    this.#client.onReady(() => {
      this.#since = clock.now();
      this.#connected();
      void this.#due(true);
    });
    this.#check();
  }

  /** Resolves once Redis has taken, or refused, what was published on the channels so far. */
  published(): Promise<void> {
    return this.#channels.settled();
  }

  health(): Json {
    const { connected, reason } = this.#client.state();
    return {
      kind: 'redis',
      url: this.#client.shown,
      ok: connected && this.#fault === undefined,
      connected,
      since: new Date(this.#since).toISOString(),
      ...(reason !== undefined && { reason }),
      ...(this.#fault !== undefined && { fault: this.#fault }),
    };
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    this.#cancelCheck();
    await this.store.close();
    await this.#running;
  }

  async #rightDatabase(): Promise<void> {
    const database = parseRedisUrl(this.#options.url)?.database ?? CONFIG_DATABASE;
    if (database === CONFIG_DATABASE) return;
    const { lines } = await diagnoseRedis(this.#options.url, START_WAIT_MS);
    throw new RouterError('HF_ROUTER_STORE_DATABASE', { database, found: lines[0] ?? '' });
  }

  #lost(reason: string): void {
    const { bus, clock, logger } = this.#services;
    this.#since = clock.now();
    logger.warn({ store: this.#client.shown, reason }, 'router.store_lost');
    bus.publish(storeConnectionChanged, { store: this.#client.shown, reason });
  }

  #connected(): void {
    const { bus, logger } = this.#services;
    const store = this.#client.shown;
    logger.info({ store }, 'router.store_connected');
    bus.publish(storeConnectionChanged, { store });
  }

  /** Another program may have written the store: it is loaded once for all changes of that time. */
  async #due(hasReconnected = false): Promise<void> {
    this.#isDue = true;
    const running = (this.#running ?? Promise.resolve()).then(() => this.#run(hasReconnected));
    this.#running = running;
    await running;
    if (this.#running === running) this.#running = undefined;
  }

  async #run(hasReconnected: boolean): Promise<void> {
    const { signal } = this.#stopped;
    if (signal.aborted || !(this.#isDue || hasReconnected)) return;
    this.#isDue = false;
    try {
      await this.#takeUp(signal);
      this.#fault = undefined;
      // What others wrote was not published on the bus here, so whoever watches the config must read it again.
      this.#services.bus.publish(routerConnected, {});
    } catch (error) {
      this.#isDue = true;
      if (!signal.aborted) this.#failed(error);
    }
  }

  /** Reports keys that hold no config, once. A lost connection has been reported already. */
  #failed(error: unknown): void {
    if (isCoded(error, 'HF_ROUTER_STORE_UNAVAILABLE')) return;
    const fault = isCoded(error) ? error.what : String(error);
    if (fault === this.#fault) return;
    this.#fault = fault;
    const { bus, logger } = this.#services;
    logger.error({ reason: fault }, 'router.store_unreadable');
    bus.publish(alertRaised, {
      name: 'router.store_unreadable',
      severity: 'critical',
      text: 'What the store holds under the key of the router config is no config: nothing can be served or changed.',
      labels: { store: this.#client.shown, reason: fault },
    });
  }

  /** Keyspace events are off by contract, so the key is compared at every read, write, and from time to time. */
  #check(): void {
    this.#cancelCheck = this.#services.clock.after(this.#options.checkMs, () => {
      void this.#look().finally(() => {
        if (!this.#stopped.signal.aborted) this.#check();
      });
    });
  }

  async #look(): Promise<void> {
    if (!this.#client.state().connected) return;
    if (this.#isDue) return this.#due();
    try {
      const active = await this.store.active();
      if (!active) await this.#due();
    } catch (error) {
      this.#isDue = true;
      if (!this.#stopped.signal.aborted) this.#failed(error);
    }
  }
}

export interface RedisChannelsOptions {
  readonly client: RedisClient;
  readonly bus: Bus;
  readonly logger: Pick<Logger, 'warn'>;
  /** What stands before the name of each channel, e.g. `router.`. */
  readonly prefix: string;
}

/** The names of a router's channels begin with it. */
const CHANNEL_PREFIX = 'router.';

/**
 * The router's channels on Redis pub/sub: what is published on the bus goes out there too, in the same order. Pub/sub
 * keeps nothing, so a message that Redis cannot take is dropped: subscribers there have lost their connection as
 * well, and read the config again when it is back.
 */
class RedisChannels {
  readonly #options: RedisChannelsOptions;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: RedisChannelsOptions) {
    this.#options = options;
  }

  /** @param owner whose subscriptions these are on the bus */
  start(owner: string): void {
    const { bus, prefix } = this.#options;
    for (const topic of Object.values(routerChannels)) {
      const channel = prefix + topic.name.slice(CHANNEL_PREFIX.length);
      bus.subscribe(topic, owner, ({ payload }) => {
        const sent = this.#send(channel, JSON.stringify(payload));
        this.#underWay.add(sent);
        void sent.finally(() => this.#underWay.delete(sent));
      });
    }
  }

  /** Resolves once Redis has taken, or refused, what was published so far. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #send(channel: string, message: string): Promise<void> {
    const { client, logger } = this.#options;
    try {
      await client.run((redis) => redis.publish(channel, message));
    } catch (error) {
      if (!(error instanceof RedisFault)) throw error;
      logger.warn({ channel, reason: error.message }, 'router.publish_failed');
    }
  }
}
