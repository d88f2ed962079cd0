import type { Redis } from 'ioredis';
import type { Bus, Topic } from '../../bus/index.ts';
import { alertRaised } from '../../core/adapters/alerts.ts';
import { type RouterChange, routerChannels, routerConnected } from '../../core/adapters/router.ts';
import type { Clock } from '../../core/clock.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Logger } from '../../core/logging/index.ts';
import type { Counter, Metrics } from '../../core/metrics.ts';
import { understand } from './payload.ts';
import { faultOf, openRedis } from './redis.ts';

/** Every channel is named `router.…` in `router-config.md`; a daemon may have another prefix. */
const DOCUMENTED_PREFIX = 'router.';

interface RouterEventsParts {
  /** May hold a password: it is shown nowhere. */
  readonly redisUrl: string;
  readonly channelPrefix: string;
  readonly pingMs: number;
  readonly alertAfterMs: number;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * The router's channels, from Redis pub/sub to the bus (`router-config.md` §Events). Pub/sub keeps nothing for who is
 * away, so every acknowledged subscription, the first and each after a reconnect, is published as `routerConnected`:
 * whoever holds something against the router reads it then.
 */
export class RouterEvents {
  readonly #parts: RouterEventsParts;
  readonly #topics: ReadonlyMap<string, Topic<RouterChange>>;
  readonly #received: Counter;
  readonly #reported = new Set<string>();
  #client: Redis | undefined;
  #stopped = false;
  #subscribedAt: number | undefined;
  #connects = 0;
  #count = 0;
  #lastAt: number | undefined;
  #fault: string | undefined;
  #alerted = false;
  #cancelAlert = () => {};
  #cancelPing = () => {};

  constructor(parts: RouterEventsParts) {
    this.#parts = parts;
    this.#topics = new Map(
      Object.values(routerChannels).map((topic) => [
        parts.channelPrefix + topic.name.slice(DOCUMENTED_PREFIX.length),
        topic,
      ]),
    );
    this.#received = parts.metrics.counter('router_events_total', {
      help: "Messages on the router's channels, by whether the payload was understood.",
      labels: ['channel', 'payload'],
    });
    parts.metrics.gauge('router_events_subscribed', {
      help: "1 while Redis has acknowledged the subscription to the router's channels.",
      collect: (gauge) => gauge.set(this.#subscribedAt === undefined ? 0 : 1),
    });
  }

  /** Begins to connect, and goes on trying until it is stopped; a Redis that is down keeps nobody from starting. */
  async start(): Promise<void> {
    const client = await openRedis(this.#parts.redisUrl, { name: 'holdfast-router-events', retry: true });
    if (this.#stopped) return client.disconnect();
    this.#client = client;
    client.on('ready', () => void this.#subscribe(client));
    client.on('message', (channel: string, payload: string) => this.#hear(channel, payload));
    client.on('error', (error: unknown) => {
      this.#fault = faultOf(error);
    });
    client.on('close', () => this.#lost());
    this.#watch();
    // What fails here is told by the events above.
    client.connect().catch(() => {});
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelAlert();
    this.#cancelPing();
    this.#client?.disconnect();
    this.#subscribedAt = undefined;
  }

  /** For health pages. */
  status(): JsonObject {
    return {
      subscribed: this.#subscribedAt !== undefined,
      channels: [...this.#topics.keys()],
      connects: this.#connects,
      received: this.#count,
      ...(this.#subscribedAt !== undefined && { since: iso(this.#subscribedAt) }),
      ...(this.#lastAt !== undefined && { lastAt: iso(this.#lastAt) }),
      ...(this.#subscribedAt === undefined && this.#fault !== undefined && { fault: this.#fault }),
    };
  }

  async #subscribe(client: Redis): Promise<void> {
    const { bus, clock, logger } = this.#parts;
    try {
      await client.subscribe(...this.#topics.keys());
    } catch (error) {
      this.#fault = faultOf(error);
      if (!this.#stopped) client.disconnect(true);
      return;
    }
    if (this.#stopped) return;
    this.#subscribedAt = clock.now();
    this.#connects += 1;
    this.#fault = undefined;
    this.#cancelAlert();
    logger.info({ channels: this.#topics.size, connects: this.#connects }, 'router.events_subscribed');
    if (this.#alerted) {
      this.#alerted = false;
      this.#alert('info', "The router's events are heard again; every leg is checked now.");
    }
    this.#ping(client);
    bus.publish(routerConnected, {});
  }

  #hear(channel: string, payload: string): void {
    const { bus, clock, logger } = this.#parts;
    const topic = this.#topics.get(channel);
    if (!topic) return;
    const at = clock.now();
    this.#count += 1;
    this.#lastAt = at;
    const { change, fault } = understand(payload, at);
    this.#received.inc({ channel: topic.name, payload: fault === undefined ? 'good' : 'bad' });
    // A chatty publisher must not fill the log: the counter has the rest.
    if (fault !== undefined && !this.#reported.has(topic.name)) {
      this.#reported.add(topic.name);
      logger.warn({ channel, reason: fault }, 'router.payload_not_understood');
    }
    bus.publish(topic, change);
  }

  #lost(): void {
    this.#cancelPing();
    if (this.#subscribedAt === undefined || this.#stopped) return;
    this.#subscribedAt = undefined;
    this.#parts.logger.warn({ reason: this.#fault ?? 'the connection ended' }, 'router.events_lost');
    this.#watch();
  }

  /** Tells a person when there is no subscription for too long. */
  #watch(): void {
    const { clock, alertAfterMs } = this.#parts;
    this.#cancelAlert = clock.after(alertAfterMs, () => {
      this.#alerted = true;
      const reason = this.#fault ?? 'the connection ended';
      this.#alert(
        'warning',
        `The router's events have not been heard for ${Math.round(alertAfterMs / 1_000)} s (${reason}); saves are found by the resync only.`,
      );
    });
  }

  #alert(severity: 'info' | 'warning', text: string): void {
    const name = severity === 'info' ? 'router.events.heard_again' : 'router.events.lost';
    this.#parts.bus.publish(alertRaised, { name, severity, text, labels: {} });
  }

  /** A cut cable says nothing by itself: who does not answer within one more period is taken as gone. */
  #ping(client: Redis): void {
    const { clock, pingMs } = this.#parts;
    this.#cancelPing = clock.after(pingMs, () => {
      this.#cancelPing = clock.after(pingMs, () => {
        this.#fault = `Redis did not answer a PING within ${pingMs} ms`;
        client.disconnect(true);
      });
      client.ping().then(
        () => {
          this.#cancelPing();
          if (this.#subscribedAt !== undefined && !this.#stopped) this.#ping(client);
        },
        () => {}, // the connection ended, which `close` tells
      );
    });
  }
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
