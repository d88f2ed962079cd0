import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { ListedEntry, ReadableStore } from '../commands/target.ts';
import { changedPaths, withoutControlFields } from '../config/network-config.ts';
import { readStore } from '../embedded/store/read-store.ts';
import { RouterError } from '../errors.ts';

interface RemotePlace {
  /** The router's API, for messages. */
  readonly url: string;
  readonly dataDir: string;
  readonly redisUrl: string | undefined;
}

/**
 * Reads what the Redis of a router elsewhere holds of its configs, and changes nothing.
 *
 * @throws HF_ROUTER_HISTORY no Redis of it is configured
 * @throws HF_ROUTER_STORE, HF_ROUTER_STORE_DATABASE, HF_ROUTER_STORE_UNAVAILABLE it cannot be read
 */
export function readRemoteStore<T>(
  { url, dataDir, redisUrl }: RemotePlace,
  read: (store: ReadableStore) => Promise<T>,
): Promise<T> {
  if (redisUrl === undefined) {
    const reason = 'it is kept in the Redis of the router, and HOLDFAST_REDIS_URL is not set';
    return Promise.reject(new RouterError('HF_ROUTER_HISTORY', { url, reason }));
  }
  return readStore({ dataDir, redisUrl }, (store) =>
    read({
      active: () => store.active(),
      entry: (ncid) => store.entry(ncid),
      history: async (limit) => withChanges(store, await store.history(limit + 1), limit),
    }),
  );
}

/** Far more than a daemon's history keeps; the bodies of older entries are not compared. */
const COMPARED = 100;

/** A daemon records whole configs alone: what each write changed is found by comparing it with the one before it. */
async function withChanges(
  store: ReadableStore,
  entries: readonly HistoryEntry[],
  limit: number,
): Promise<ListedEntry[]> {
  const configs = new Map<string, NetworkConfig | undefined>();
  const configOf = async (ncid: string) => {
    if (!configs.has(ncid)) configs.set(ncid, parsed((await store.entry(ncid))?.body));
    return configs.get(ncid);
  };
  const described: ListedEntry[] = [];
  for (const [index, entry] of entries.slice(0, limit).entries()) {
    const before = entries[index + 1];
    const isKnown = entry.changed.length > 0 || before === undefined || index >= COMPARED;
    const [now, then] = isKnown ? [] : [await configOf(entry.ncid), await configOf(before.ncid)];
    if (now && then) described.push({ ...entry, changed: changedPaths(then, now) });
    else described.push(entry.changed.length > 0 ? entry : { ...entry, uncompared: true });
  }
  return described;
}

function parsed(body: string | undefined): NetworkConfig | undefined {
  try {
    const config: unknown = JSON.parse(body ?? '');
    return isObject(config) ? withoutControlFields(config) : undefined;
  } catch {
    return undefined; // an entry that is no config
  }
}
