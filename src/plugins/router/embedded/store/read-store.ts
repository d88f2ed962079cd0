import { RedisClient } from '../../../../core/host/redis/client.ts';
import { parseRedisUrl } from '../../../../core/host/redis/url.ts';
import { openVault } from '../../../../core/host/secrets/vault.ts';
import type { ReadableStore } from '../../commands/target.ts';
import { RouterError } from '../../errors.ts';
import { CONFIG_DATABASE, diagnoseRedis } from '../../redis.ts';
import { StoreReader } from './reader.ts';
import { RedisConfigStore } from './redis-config-store.ts';

export interface StorePlace {
  readonly dataDir: string;
  /** The config is kept there when it is set, else on the data folder. */
  readonly redisUrl?: string | undefined;
}

const WAIT_MS = 5_000;

/**
 * Reads the config store for a command, whether an instance runs or not, and changes nothing.
 *
 * @throws HF_ROUTER_STORE_MISSING no router has run on the folder
 * @throws HF_ROUTER_STORE it cannot be read; a Redis says where it holds the key instead (R30)
 * @throws HF_ROUTER_STORE_DATABASE the URL names another database than the documents
 * @throws HF_ROUTER_STORE_UNAVAILABLE Redis does not answer
 */
export async function readStore<T>(
  { dataDir, redisUrl }: StorePlace,
  read: (store: ReadableStore) => Promise<T>,
): Promise<T> {
  if (redisUrl !== undefined) return readRedis(redisUrl, dataDir, read);
  const reader = new StoreReader(dataDir, () => openVault(dataDir));
  try {
    return await read({
      active: async () => reader.active(),
      history: async (limit) => reader.history(limit),
      entry: async (ncid) => reader.entry(ncid),
    });
  } finally {
    reader.close();
  }
}

async function readRedis<T>(
  url: string,
  dataDir: string,
  read: (store: ReadableStore) => Promise<T>,
): Promise<T> {
  const client = await RedisClient.open({ url, name: 'holdfast-command', commandTimeoutMs: WAIT_MS });
  const store = new RedisConfigStore({ client, historyLimit: 1, vault: () => openVault(dataDir) });
  try {
    await client.ready(WAIT_MS);
    const database = parseRedisUrl(url)?.database ?? CONFIG_DATABASE;
    if (database !== CONFIG_DATABASE || !(await store.active())) {
      const found = (await diagnoseRedis(url, WAIT_MS)).lines[0] ?? '';
      if (database === CONFIG_DATABASE)
        throw new RouterError('HF_ROUTER_STORE', { file: client.shown, reason: found });
      throw new RouterError('HF_ROUTER_STORE_DATABASE', { database, found });
    }
    return await read(store);
  } finally {
    await store.close();
  }
}
