import type { Logger } from 'pino';
import type { Bus } from '../../../bus/bus.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import { type RedisClient, RedisFault } from '../../../core/host/redis/client.ts';

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
 * keeps nothing, so a message that Redis cannot take is given up: whoever listens there has lost its connection as
 * well, and reads the config anew when it is back.
 */
export class RedisChannels {
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
