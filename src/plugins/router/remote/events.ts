import type { Bus } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import { type RouterChange, routerChannels, routerConnected } from '../../../core/contracts/router.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Counter, Metrics } from '../../../core/host/metrics/metrics.ts';
import { RedisClient } from '../../../core/host/redis/client.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isObject, type JsonObject } from '../../../core/kernel/json.ts';

/** Every channel is named `router.…`; a daemon may have another prefix. */
const DOCUMENTED_PREFIX = 'router.';

interface RouterEventsOptions {
  /** May hold a password: it is shown nowhere. */
  readonly redisUrl: string;
  readonly channelPrefix: string;
  readonly pingMs: number;
  readonly alertAfterMs: number;
  /** Called before the event of a changed interface is published on the bus. */
  readonly onHeard: () => void;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

function channelOf({ name }: Topic<RouterChange>, prefix: string): string {
  return prefix + name.slice(DOCUMENTED_PREFIX.length);
}

/** As the router publishes on them. */
export function channelNames(prefix: string): string[] {
  return Object.values(routerChannels).map((topic) => channelOf(topic, prefix));
}

/**
 * The router's channels, from Redis pub/sub to the bus. Pub/sub stores no messages for absent subscribers, so every
 * acknowledged subscription, the first and each after a reconnect, is published as `routerConnected`. Subscribers that
 * compare something with the router's config read it then.
 */
export class RouterEvents {
  readonly #options: RouterEventsOptions;
  readonly #topics: ReadonlyMap<string, Topic<RouterChange>>;
  readonly #received: Counter;
  readonly #reported = new Set<string>();
  #client: RedisClient | undefined;
  #stopped = false;
  #subscribedAt: number | undefined;
  #connects = 0;
  #count = 0;
  #lastAt: number | undefined;
  #fault: string | undefined;
  #alerted = false;
  #cancelAlert = () => {};
  #cancelPing = () => {};

  constructor(options: RouterEventsOptions) {
    this.#options = options;
    this.#topics = new Map(
      Object.values(routerChannels).map((topic) => [channelOf(topic, options.channelPrefix), topic]),
    );
    this.#received = options.metrics.counter('router_events_total', {
      help: "Messages on the router's channels, by whether the payload was understood.",
      labels: ['channel', 'payload'],
    });
    options.metrics.gauge('router_events_subscribed', {
      help: "1 while Redis has acknowledged the subscription to the router's channels.",
      collect: (gauge) => gauge.set(this.#subscribedAt === undefined ? 0 : 1),
    });
  }

  /** Begins to connect, and repeats this until it is stopped. A Redis that is down does not delay the start. */
  async start(): Promise<void> {
    const { redisUrl: url, pingMs } = this.#options;
    const client = await RedisClient.open({ url, name: 'holdfast-router-events', commandTimeoutMs: pingMs });
    if (this.#stopped) return client.close();
    this.#client = client;
    this.#watch();
    client.onReady(() => void this.#subscribe(client));
    client.onLost((reason) => this.#lost(reason));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelAlert();
    this.#cancelPing();
    this.#client?.close();
    this.#subscribedAt = undefined;
  }

  get isSubscribed(): boolean {
    return this.#subscribedAt !== undefined;
  }

  /** For health pages. */
  status(): JsonObject {
    return {
      subscribed: this.isSubscribed,
      channels: [...this.#topics.keys()],
      connects: this.#connects,
      received: this.#count,
      ...(this.#subscribedAt !== undefined && { since: iso(this.#subscribedAt) }),
      ...(this.#lastAt !== undefined && { lastAt: iso(this.#lastAt) }),
      ...(this.#subscribedAt === undefined && {
        fault: this.#fault ?? this.#client?.state().reason ?? 'not yet',
      }),
    };
  }

  async #subscribe(client: RedisClient): Promise<void> {
    const { bus, clock, logger } = this.#options;
    try {
      await client.run(async (redis) => {
        redis
          .removeAllListeners('message')
          .on('message', (channel, payload) => this.#receive(channel, payload));
        await redis.subscribe(...this.#topics.keys());
      });
    } catch (error) {
      return this.#reconnect(client, error instanceof Error ? error.message : 'it cannot be subscribed to');
    }
    if (this.#stopped) return;
    this.#subscribedAt = clock.now();
    this.#connects += 1;
    this.#fault = undefined;
    this.#cancelAlert();
    logger.info({ channels: this.#topics.size, connects: this.#connects }, 'router.events_subscribed');
    if (this.#alerted) {
      this.#alerted = false;
      this.#alert('info', "The router's events are received again, and every leg is checked now.");
    }
    this.#pingLater(client);
    bus.publish(routerConnected, {});
  }

  #receive(channel: string, payload: string): void {
    const { bus, clock, logger } = this.#options;
    const topic = this.#topics.get(channel);
    if (!topic) return;
    const at = clock.now();
    this.#count += 1;
    this.#lastAt = at;
    const { change, fault } = parsePayload(payload, at);
    this.#received.inc({ channel: topic.name, payload: fault === undefined ? 'good' : 'bad' });
    // One log line for each channel, so that a busy publisher does not fill the log. The counter counts all of them.
    if (fault !== undefined && !this.#reported.has(topic.name)) {
      this.#reported.add(topic.name);
      logger.warn({ channel, reason: fault }, 'router.payload_not_understood');
    }
    if (topic === routerChannels.ifaceChangeApplied) this.#options.onHeard();
    bus.publish(topic, change);
  }

  #lost(reason: string): void {
    this.#cancelPing();
    if (this.#subscribedAt === undefined || this.#stopped) return;
    this.#subscribedAt = undefined;
    this.#fault ??= reason;
    this.#options.logger.warn({ reason: this.#fault }, 'router.events_lost');
    this.#watch();
  }

  /** Raises an alert when there is no subscription for too long. */
  #watch(): void {
    const { clock, alertAfterMs } = this.#options;
    this.#cancelAlert = clock.after(alertAfterMs, () => {
      this.#alerted = true;
      const reason = this.#fault ?? this.#client?.state().reason ?? 'no reason is known';
      this.#alert(
        'warning',
        `The router's events have not been received for ${Math.round(alertAfterMs / 1_000)} s (${reason}); saves are found by the regular readings of the config only.`,
      );
    });
  }

  #alert(severity: 'info' | 'warning', text: string): void {
    const name = severity === 'info' ? 'router.events.heard_again' : 'router.events.lost';
    this.#options.bus.publish(alertRaised, { name, severity, text, labels: {} });
  }

  /** A broken network path is noticed only in this way: a Redis that does not answer counts as lost. */
  #pingLater(client: RedisClient): void {
    const { clock, pingMs } = this.#options;
    this.#cancelPing = clock.after(pingMs, () => {
      client
        .run((redis) => redis.ping())
        .then(
          () => {
            if (this.#subscribedAt !== undefined && !this.#stopped) this.#pingLater(client);
          },
          () => this.#reconnect(client, `Redis did not answer within ${pingMs} ms`),
        );
    });
  }

  /** Closes a connection that does not work; the client makes the next one. */
  #reconnect(client: RedisClient, fault: string): void {
    if (this.#stopped) return;
    this.#fault = fault;
    // Without a connection there is nothing to close: the client is making the next one already.
    client.run(async (redis) => redis.disconnect(true)).catch(() => {});
  }
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** The content of a message, and what of it could not be parsed. */
interface Parsed {
  readonly change: RouterChange;
  /** Undefined when nothing was wrong. */
  readonly fault?: string;
}

const FIELDS = ['ncid', 'transID', 'intf'] as const;
/** No event needs more; a larger payload is not parsed. */
const LARGEST = 64 * 1024;

/**
 * Parses the payload of a router's channel: empty, or JSON of which only the fields that we use are read. The channel
 * itself says what
 * happened, so a payload that cannot be parsed is no reason to drop the message.
 *
 * @param at when it was received, epoch milliseconds; a router's own clock is not ours
 */
export function parsePayload(text: string, at: number): Parsed {
  if (text.trim() === '') return { change: { at } };
  if (text.length > LARGEST) return { change: { at }, fault: `it is ${text.length} characters long` };
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { change: { at }, fault: 'it is no JSON' };
  }
  if (!isObject(body)) return { change: { at }, fault: 'it is no JSON object' };
  const given = body;
  const wrong = FIELDS.filter((field) => given[field] !== undefined && typeof given[field] !== 'string');
  const present = FIELDS.filter((field) => typeof given[field] === 'string');
  const { up } = given;
  const change = {
    ...Object.fromEntries(present.map((field) => [field, given[field]])),
    ...(typeof up === 'boolean' && { up }),
    at,
  };
  return wrong.length === 0 ? { change } : { change, fault: `${wrong.join(', ')} is no text` };
}
