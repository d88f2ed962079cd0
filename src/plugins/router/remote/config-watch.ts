/**
 * Notices writes of a router elsewhere that its API would not have taken: by hand in its store, or past the ncid check.
 * Each config that anybody here reads is compared with the one before, and the machine `router-observed-config` decides.
 * Where the router's Redis is known, its history says which ncid a write was made from.
 */
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { configSeen, OBSERVED_KEY, observedActor, writeFound } from '../observed-config.ts';
import { askRedis, HISTORY_DATABASE, HISTORY_KEY } from '../redis.ts';

/** Another daemon writes the history some seconds after the router has taken a write: when it is read, milliseconds. */
const HISTORY_AFTER_MS = [3_000, 10_000, 30_000, 60_000];
const NEWEST = 10;
/** Entries of the history bear seconds; this much before the ncid was made an entry may be that of its write. */
const SLACK_MS = 2_000;
const MADE_AT = /\d{13}$/;

interface Seen {
  readonly ncid: string;
  readonly fingerprint: string;
  readonly firstAt: number;
  lastAt: number;
}

export class ConfigWatch {
  readonly #services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger' | 'vault'>;
  readonly #redisUrl: string | undefined;
  #seen: Seen | undefined;
  #cancelHistory = () => {};

  /** @param redisUrl the Redis of the router, with its history; without it only the configs themselves are compared */
  constructor(
    services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger' | 'vault'>,
    redisUrl: string | undefined,
  ) {
    this.#services = services;
    this.#redisUrl = redisUrl;
  }

  /** The router serves this config now. */
  seen(config: NetworkConfig): void {
    const { actors, bus, clock, vault } = this.#services;
    const { ncid, reqId } = config;
    if (typeof ncid !== 'string' || ncid === '') return;
    const now = clock.now();
    const fingerprint = vault.fingerprint(contentOf(config));
    const before = this.#seen;
    if (before?.ncid === ncid && before.fingerprint === fingerprint) {
      before.lastAt = now;
      return;
    }
    this.#seen = { ncid, fingerprint, firstAt: now, lastAt: now };
    const newest = actors.get(observedActor, OBSERVED_KEY)?.context.known.at(-1);
    if (!before && newest?.ncid === ncid && newest.fingerprint === fingerprint) return;
    bus.publish(configSeen, {
      ncid,
      fingerprint,
      ...(typeof reqId === 'string' && { request: vault.fingerprint(reqId) }),
      heldMs: before ? before.lastAt - before.firstAt : 0,
    });
    this.#readHistoryLater(ncid, contentOf(config), 0);
  }

  stop(): void {
    this.#seen = undefined;
    this.#cancelHistory();
  }

  #readHistoryLater(ncid: string, content: NetworkConfig, tries: number): void {
    this.#cancelHistory();
    const [redisUrl, afterMs] = [this.#redisUrl, HISTORY_AFTER_MS[tries]];
    if (redisUrl === undefined || afterMs === undefined) return;
    this.#cancelHistory = this.#services.clock.after(afterMs, () => {
      this.#readHistory(redisUrl, ncid, content)
        .then((isFound) => {
          if (!isFound) this.#readHistoryLater(ncid, content, tries + 1);
        })
        .catch((error: unknown) => this.#services.logger.error({ err: error }, 'router.history_unread'));
    });
  }

  /** @returns whether nothing more is to be looked for */
  async #readHistory(redisUrl: string, ncid: string, content: NetworkConfig): Promise<boolean> {
    const { bus, vault } = this.#services;
    const wanted = vault.fingerprint(withoutUuids(content));
    const write = (await this.#newestWrites(redisUrl, ncid)).find(
      (config) => vault.fingerprint(withoutUuids(contentOf(config))) === wanted,
    );
    if (this.#seen?.ncid !== ncid) return true;
    if (!write) return false;
    const { ncid: posted, ignoreNcid } = write;
    bus.publish(writeFound, {
      ncid,
      ...(typeof posted === 'string' && posted !== '' && { posted }),
      ...(ignoreNcid === true && { ignoreNcid }),
    });
    return true;
  }

  /** The entries of the history that are not older than the ncid. */
  async #newestWrites(redisUrl: string, ncid: string): Promise<NetworkConfig[]> {
    const [madeAt] = MADE_AT.exec(ncid) ?? [];
    if (madeAt === undefined) return [];
    const since = Math.floor((Number(madeAt) - SLACK_MS) / 1000);
    const found = await askRedis(redisUrl, async (redis) => {
      await redis.select(HISTORY_DATABASE);
      return redis.zrevrangebyscore(HISTORY_KEY, '+inf', since, 'LIMIT', 0, NEWEST);
    });
    if (typeof found === 'string') {
      this.#services.logger.warn({ reason: found }, 'router.history_unread');
      return [];
    }
    return found.map(parsed).filter((config) => config !== undefined);
  }
}

/** What of a config only a write can change. */
function contentOf(config: NetworkConfig): NetworkConfig {
  const { ncid: _, ...content } = withoutControlFields(config);
  return content;
}

/** A daemon adds `meta.uuid` where a posted config has none, so a config differs from the write that made it. */
function withoutUuids(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUuids);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => {
    if (key !== 'meta' || !isObject(item)) return [key, withoutUuids(item)] as const;
    const { uuid: _, ...meta } = item;
    return [key, meta] as const;
  });
  return Object.fromEntries(
    entries.filter(([key, item]) => key !== 'meta' || Object.keys(Object(item)).length > 0),
  );
}

function parsed(text: string): NetworkConfig | undefined {
  try {
    const config: unknown = JSON.parse(text);
    return isObject(config) ? config : undefined;
  } catch {
    return undefined;
  }
}
