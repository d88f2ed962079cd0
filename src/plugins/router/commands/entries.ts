import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { ReadableStore } from '../store/read-store.ts';
import { parseConfig } from './config/config-file.ts';
import { type CommandSettings, withStore } from './target.ts';

/** More than any history keeps. */
const ALL = 100_000;
/** Shorter ones are places in the list. */
const SHORTEST_PREFIX = 4;

/** A config of the history, whole: read from the store here with the vault's keys, for the HTTP API tells no values. */
export interface Found {
  readonly label: string;
  readonly config: NetworkConfig;
}

/**
 * @param wanted `active`, `seed`, a place in `router history` (1 is the newest), or the beginning of an ncid
 * @throws HF_ROUTER_ENTRY there is no such entry, or several
 * @throws HF_ROUTER_STORE the history is not kept on this data folder
 */
export function findEntry(
  where: { readonly dataDir: string },
  settings: CommandSettings,
  wanted: string,
): Promise<Found> {
  return withStore(where, settings, (store) =>
    wanted === 'active' ? activeOf(store) : entryOf(store, wanted),
  );
}

async function activeOf(store: ReadableStore): Promise<Found> {
  const active = await store.active();
  if (!active) return none('active', 'the store is empty');
  return { label: `active (${active.ncid})`, config: JSON.parse(active.body) };
}

async function entryOf(store: ReadableStore, wanted: string): Promise<Found> {
  const entries = await store.history(ALL);
  const isPlace = /^\d+$/.test(wanted) && wanted.length < SHORTEST_PREFIX;
  const place = Number(wanted);
  if (wanted === 'seed') {
    const seed = entries.find(({ op }) => op === 'seed');
    return seed
      ? found(store, seed)
      : none(wanted, 'what was there before the first write is not kept any more');
  }
  if (isPlace) {
    const entry = entries[place - 1];
    if (!entry) return none(wanted, `the history has ${entries.length} entries`);
    return found(store, entry);
  }
  if (wanted.length < SHORTEST_PREFIX)
    return none(wanted, `an ncid is named by ${SHORTEST_PREFIX} characters or more`);
  const matching = entries.filter(({ ncid }) => ncid.startsWith(wanted));
  const [first] = matching;
  if (!first) return none(wanted, `no ncid of the ${entries.length} entries begins so`);
  if (matching.some(({ ncid }) => ncid !== first.ncid)) return none(wanted, `${matching.length} begin so`);
  return found(store, first);
}

/** A history that another daemon wrote may hold what is no config. */
async function found(store: ReadableStore, { ncid, score }: HistoryEntry): Promise<Found> {
  const entry = await store.entry(ncid);
  if (!entry) return none(ncid, 'it has left the history just now');
  const label = `${ncid} of ${new Date(score * 1000).toISOString().slice(0, 19)}Z`;
  return { label, config: parseConfig(entry.body, `history entry ${ncid}`) };
}

function none(entry: string, reason: string): never {
  throw new HoldfastError('HF_ROUTER_ENTRY', { entry, reason });
}
