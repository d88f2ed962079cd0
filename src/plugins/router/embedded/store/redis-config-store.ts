import { createHash } from 'node:crypto';
import { z } from 'zod';
import type {
  ConfigStore,
  ConfigWrite,
  HistoryEntry,
  StoredConfig,
  StoredTransaction,
} from '../../../../core/contracts/config-store.ts';
import { type RedisClient, RedisFault } from '../../../../core/host/redis/client.ts';
import type { Vault } from '../../../../core/host/secrets/vault.ts';
import type { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { isObject, nestedDeeper } from '../../../../core/kernel/json.ts';
import { CONTROL_FIELDS, withoutControlFields } from '../../config/network-config.ts';
import { DEEPEST } from '../../config/validate.ts';
import { RouterError } from '../../errors.ts';
import { CONFIG_DATABASE, CONFIG_KEY, HISTORY_DATABASE, HISTORY_KEY } from '../../redis.ts';
import { CONFIG_PURPOSE } from './reader.ts';
import {
  COMMIT,
  ENTRY,
  FIRST_KEY,
  HISTORY,
  READ,
  SAVE,
  TRANSACTION_KEY,
  WRITES_KEY,
} from './redis-scripts.ts';

export interface RedisConfigStoreOptions {
  /** Closed with the store. */
  readonly client: RedisClient;
  /** Entries of the history that are kept. */
  readonly historyLimit: number;
  /** Called when a config is sealed or opened: the copy of the config before the first write is encrypted. */
  readonly vault: () => Vault;
  /** Called when a reading differs from what was read or written last: another program writes this store. */
  readonly onForeign?: () => void;
}

interface Seen extends Omit<StoredConfig, 'transaction'> {
  /** What the key holds; the body is without the control fields that another daemon may have left there (R4). */
  readonly text: string;
  readonly sha: string;
}

// Every program with access to this Redis may have written it.
const name = z.string().min(1).max(1_024);

/** The config before the first write: `score` is that of the first write, `sealed` is base64. */
const firstSchema = z.object({ ncid: name, score: z.number(), sealed: z.string() });
type First = z.infer<typeof firstSchema>;

/** The facts of a write that are stored beside its config. */
const factsSchema = z.object({ ncid: name, op: name, who: name, changed: z.array(z.string()).max(1_000) });
type WriteFacts = Pick<HistoryEntry, 'ncid' | 'op' | 'who' | 'changed'>;

const transactionSchema = z.object({
  transID: name,
  who: name,
  previous: name,
  deadline: z.number().nonnegative().max(8_640_000_000_000_000),
});

/**
 * The config store in Redis, at the places that a router's daemon uses: `sysdb:networkConfig` in database 1,
 * `history:networkConfig` in database 0. Both hold whole configs in plaintext, by contract. How durable a save is
 * depends on the settings `appendonly` and `appendfsync` of Redis.
 */
export class RedisConfigStore implements ConfigStore {
  readonly #client: RedisClient;
  readonly #historyLimit: number;
  readonly #vault: () => Vault;
  readonly #onForeign: () => void;
  #seen: Seen | undefined;
  /** The transaction as it was last read or written. */
  #transaction: string | null = null;
  /** There has been a write, so the config before the first one is either kept or lost. */
  #isWritten = false;

  constructor({ client, historyLimit, vault, onForeign = () => {} }: RedisConfigStoreOptions) {
    this.#client = client;
    this.#historyLimit = historyLimit;
    this.#vault = vault;
    this.#onForeign = onForeign;
  }

  latest(): StoredConfig | undefined {
    return this.#client.state().connected ? this.#seen : undefined;
  }

  /** @throws HF_ROUTER_STORE_UNAVAILABLE; HF_ROUTER_STORE what the key holds is no config */
  async active(): Promise<StoredConfig | undefined> {
    const [seenBefore, transactionBefore] = [this.#seen, this.#transaction];
    const databases = [CONFIG_DATABASE, HISTORY_DATABASE];
    const found = await this.#ask(READ, [CONFIG_KEY, TRANSACTION_KEY], databases);
    const [text, transaction, now] = found as [
      config: string | null,
      transaction: string | null,
      now: string,
    ];
    const isForeign =
      seenBefore !== undefined &&
      ((text !== this.#seen?.text && seenBefore === this.#seen) ||
        (transaction !== this.#transaction && transactionBefore === this.#transaction));
    if (text !== this.#seen?.text || !text) this.#seen = text === null ? undefined : this.#understood(text);
    this.#transaction = transaction;
    if (isForeign) this.#onForeign();
    if (!this.#seen || transaction === null) return this.#seen;
    return { ...this.#seen, transaction: this.#transactionOf(transaction, Number(now)) };
  }

  async save({ expected, ncid, body, at, op, who, changed, transaction }: ConfigWrite): Promise<boolean> {
    const replaced = this.#seen?.ncid === expected ? this.#seen : undefined;
    const first = replaced && !this.#isWritten && op !== 'seed' ? this.#sealed(replaced, at) : '';
    const facts: WriteFacts = { ncid, op, who, changed };
    const score = Math.floor(at / 1000);
    const texts = [
      expected ?? '',
      replaced?.sha ?? '',
      body,
      op,
      score,
      JSON.stringify(facts),
      this.#historyLimit,
      first,
      transaction?.transID ?? '',
      transaction?.windowMs ?? 0,
      who,
    ];
    const keys = [CONFIG_KEY, HISTORY_KEY, WRITES_KEY, FIRST_KEY, TRANSACTION_KEY];
    const answer = await this.#ask(SAVE, keys, [CONFIG_DATABASE, HISTORY_DATABASE, ...texts], true);
    const [saved, stored] = answer as [saved: number, transaction?: string];
    if (saved !== 1) return false;
    this.#transaction = stored ?? null;
    this.#seen = { ncid, body, text: body, sha: sha1(body) };
    this.#isWritten ||= op !== 'seed';
    return true;
  }

  async commit(transID: string, expected: string): Promise<boolean> {
    const args = [CONFIG_DATABASE, HISTORY_DATABASE, transID, expected];
    if ((await this.#ask(COMMIT, [CONFIG_KEY, TRANSACTION_KEY], args, true)) !== 1) return false;
    this.#transaction = null;
    return true;
  }

  async history(limit: number): Promise<readonly HistoryEntry[]> {
    const keys = [HISTORY_KEY, WRITES_KEY, FIRST_KEY];
    const found = await this.#ask(HISTORY, keys, [HISTORY_DATABASE, limit]);
    const [flat, writes, kept] = found as [flat: string[], writes: string[], first: string | null];
    const facts = writes.flatMap((write) => understood(factsSchema, write.slice(SHA_LENGTH)) ?? []);
    const ages = new Map<string, number>(facts.map(({ ncid }, index) => [ncid, index]));
    const entries: { age: number; entry: HistoryEntry }[] = [];
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const ncid = flat[i] ?? '';
      const age = ages.get(ncid) ?? facts.length;
      entries.push({
        age,
        entry: { score: Math.floor(Number(flat[i + 1])), ...(facts[age] ?? foreign(ncid)) },
      });
    }
    const newestFirst = entries.toSorted((a, b) => b.entry.score - a.entry.score || a.age - b.age);
    const all = newestFirst.map(({ entry }) => entry);
    const first = firstOf(kept);
    if (first && !ages.has(first.ncid) && !all.some(({ ncid }) => ncid === first.ncid)) {
      const { ncid, score } = first;
      all.push({ score, ncid, op: 'seed', who: 'holdfast', changed: [] });
    }
    return all.slice(0, limit);
  }

  async entry(ncid: string): Promise<StoredConfig | undefined> {
    const found = await this.#ask(ENTRY, [HISTORY_KEY, FIRST_KEY], [HISTORY_DATABASE, ncid]);
    const [body, kept] = found as [member: string | null, first?: string | null];
    if (body) return { ncid, body };
    const first = firstOf(kept);
    if (first?.ncid !== ncid) return undefined;
    return { ncid, body: this.#vault().open(Buffer.from(first.sealed, 'base64'), CONFIG_PURPOSE) };
  }

  #sealed({ ncid, body }: StoredConfig, at: number): string {
    const sealed = Buffer.from(this.#vault().seal(body, CONFIG_PURPOSE)).toString('base64');
    return JSON.stringify({ ncid, score: Math.floor(at / 1000), sealed } satisfies First);
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
      throw new RouterError('HF_ROUTER_STORE_UNAVAILABLE', { store: this.#client.shown, reason });
    }
  }

  #understood(text: string): Seen {
    const config = parsed(text);
    const isConfig = isObject(config) && typeof config.ncid === 'string' && config.ncid !== '';
    if (!isConfig || nestedDeeper(config, DEEPEST)) {
      this.#seen = undefined;
      throw this.#error(`key ${CONFIG_KEY} in database ${CONFIG_DATABASE} holds no JSON object with an ncid`);
    }
    const isPlain = CONTROL_FIELDS.every((field) => config[field] === undefined);
    const body = isPlain ? text : JSON.stringify(withoutControlFields(config));
    return { ncid: config.ncid as string, body, text, sha: sha1(text) };
  }

  /** @param now by the clock that set the deadline, epoch milliseconds @throws HF_ROUTER_STORE */
  #transactionOf(text: string, now: number): StoredTransaction {
    const transaction = understood(transactionSchema, text);
    if (!transaction)
      throw this.#error(
        `key ${TRANSACTION_KEY} in database ${HISTORY_DATABASE} holds no transaction of ours`,
      );
    const { deadline, ...rest } = transaction;
    return { ...rest, leftMs: Math.max(0, deadline - now) };
  }

  #error(reason: string): HoldfastError {
    return new RouterError('HF_ROUTER_STORE', { file: this.#client.shown, reason });
  }
}

const SHA_LENGTH = 40;

/** Redis has no other hash for its scripts. Here it distinguishes texts and protects nothing. */
function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

function firstOf(text: string | null | undefined): First | undefined {
  return text ? understood(firstSchema, text) : undefined;
}

/** An entry that another daemon wrote: only its config is known. */
function foreign(ncid: string): WriteFacts {
  return { ncid, op: 'save', who: 'not Holdfast', changed: [] };
}

function understood<T>(schema: z.ZodType<T>, text: string): T | undefined {
  return schema.safeParse(parsed(text)).data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
