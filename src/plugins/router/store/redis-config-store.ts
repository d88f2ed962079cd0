import { createHash } from 'node:crypto';
import type {
  ConfigStore,
  ConfigWrite,
  HistoryEntry,
  StoredConfig,
} from '../../../core/adapters/config-store.ts';
import { CONTROL_FIELDS, withoutControlFields } from '../../../core/adapters/router.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import { isObject } from '../../../core/json.ts';
import {
  CONFIG_DATABASE,
  CONFIG_KEY,
  HISTORY_DATABASE,
  HISTORY_KEY,
  type RedisClient,
  RedisFault,
} from '../../../core/redis/index.ts';
import { HISTORY, READ, SAVE, WRITES_KEY } from './redis-scripts.ts';

export interface RedisConfigStoreOptions {
  /** Closed with the store. */
  readonly client: RedisClient;
  /** Entries of the history that are kept. */
  readonly historyLimit: number;
  /** A reading differed from what was read or written last: somebody else writes this store. */
  readonly onForeign?: () => void;
}

interface Seen extends StoredConfig {
  /** What the key holds; the body is without the control fields that another daemon may have left there (R4). */
  readonly text: string;
  readonly sha: string;
}

/** What is known of a write beside its config. */
type WriteFacts = Pick<HistoryEntry, 'ncid' | 'op' | 'who' | 'changed'>;

/**
 * The config store in Redis, at the places of `router-config.md` §Where it lives: `sysdb:networkConfig` in database 1,
 * `history:networkConfig` in database 0. Both hold whole configs in plaintext, by contract. How durable a save is, is
 * for Redis to say (its `appendonly` and `appendfsync`).
 */
export class RedisConfigStore implements ConfigStore {
  readonly #client: RedisClient;
  readonly #historyLimit: number;
  readonly #onForeign: () => void;
  #seen: Seen | undefined;

  constructor({ client, historyLimit, onForeign = () => {} }: RedisConfigStoreOptions) {
    this.#client = client;
    this.#historyLimit = historyLimit;
    this.#onForeign = onForeign;
  }

  /** @throws HF_ROUTER_STORE_UNAVAILABLE; HF_ROUTER_STORE what the key holds is no config */
  async active(): Promise<StoredConfig | undefined> {
    const known = this.#seen;
    const text = await this.#ask(READ, [CONFIG_KEY], [CONFIG_DATABASE]);
    if (typeof text === 'string' && text === this.#seen?.text) return this.#seen;
    const isForeign = known !== undefined && known === this.#seen;
    this.#seen = typeof text === 'string' ? this.#understood(text) : undefined;
    if (isForeign) this.#onForeign();
    return this.#seen;
  }

  async save({ expected, ncid, body, at, op, who, changed }: ConfigWrite): Promise<boolean> {
    const sha = this.#seen?.ncid === expected ? (this.#seen?.sha ?? '') : '';
    const facts: WriteFacts = { ncid, op, who, changed };
    const score = Math.floor(at / 1000);
    const texts = [expected ?? '', sha, body, op, score, JSON.stringify(facts), this.#historyLimit];
    const keys = [CONFIG_KEY, HISTORY_KEY, WRITES_KEY];
    const saved = await this.#ask(SAVE, keys, [CONFIG_DATABASE, HISTORY_DATABASE, ...texts], true);
    if (saved === 1) this.#seen = { ncid, body, text: body, sha: sha1(body) };
    return saved === 1;
  }

  async history(limit: number): Promise<readonly HistoryEntry[]> {
    const found = await this.#ask(HISTORY, [HISTORY_KEY, WRITES_KEY], [HISTORY_DATABASE, limit]);
    const [flat, writes] = found as [flat: string[], writes: string[]];
    const age = new Map<string, number>(writes.map((write, index) => [write.slice(0, SHA_LENGTH), index]));
    const entries: { age: number; entry: HistoryEntry }[] = [];
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const body = flat[i] ?? '';
      const index = age.get(sha1(body));
      const facts =
        index === undefined ? factsOf(body) : JSON.parse(writes[index]?.slice(SHA_LENGTH) ?? '{}');
      const entry = { score: Math.floor(Number(flat[i + 1])), ...(facts as WriteFacts), body };
      entries.push({ age: index ?? writes.length, entry });
    }
    const newestFirst = entries.toSorted((a, b) => b.entry.score - a.entry.score || a.age - b.age);
    return newestFirst.slice(0, limit).map(({ entry }) => entry);
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  async #ask(
    script: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    isWrite = false,
  ): Promise<unknown> {
    try {
      return await this.#client.run((redis) => redis.eval(script, keys.length, ...keys, ...args));
    } catch (error) {
      if (!(error instanceof RedisFault)) throw error;
      const reason = error.message;
      if (isWrite && error.kind === 'unanswered') throw this.#error(`no answer to a write, ${reason}`);
      throw new HoldfastError('HF_ROUTER_STORE_UNAVAILABLE', { store: this.#client.shown, reason });
    }
  }

  #understood(text: string): Seen {
    const config = parsed(text);
    if (!isObject(config) || typeof config.ncid !== 'string' || config.ncid === '') {
      this.#seen = undefined;
      throw this.#error(`key ${CONFIG_KEY} in database ${CONFIG_DATABASE} holds no JSON object with an ncid`);
    }
    const isPlain = CONTROL_FIELDS.every((field) => config[field] === undefined);
    const body = isPlain ? text : JSON.stringify(withoutControlFields(config));
    return { ncid: config.ncid, body, text, sha: sha1(text) };
  }

  #error(reason: string): HoldfastError {
    return new HoldfastError('HF_ROUTER_STORE', { file: this.#client.shown, reason });
  }
}

const SHA_LENGTH = 40;

/** Redis has no other hash for its scripts; it tells texts apart here and protects nothing. */
function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

/** An entry that another daemon wrote: only its config is known. */
function factsOf(body: string): WriteFacts {
  const config = parsed(body);
  const ncid = isObject(config) && typeof config.ncid === 'string' ? config.ncid : '';
  return { ncid, op: 'save', who: 'not Holdfast', changed: [] };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
