import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { doomedOf, newestFirst } from '../../../machines/memory/retention.ts';
import { settingsOf } from '../backups/actors.ts';
import { listBackups } from '../backups/effects.ts';
import { seed } from '../backups/seed.ts';
import type { QdrantOptions } from '../options.ts';
import { RestStores } from '../store/stores.ts';

/**
 * Runs `work` on a store elsewhere, with no instance: nothing of it is recorded.
 *
 * @throws HF_CONTROL_UNREACHABLE the store is embedded, and so is there only while an instance runs
 */
export async function directly<T>(
  options: QdrantOptions,
  { dataDir }: CommandContext,
  work: (stores: RestStores) => Promise<T>,
): Promise<T> {
  const { url, apiKeyFile, apiKeyRef, collection, caFile } = options;
  if (url === undefined) {
    throw new HoldfastError('HF_CONTROL_UNREACHABLE', {
      dir: dataDir,
      reason: 'nothing runs there, and the embedded memory store is there only while it does',
    });
  }
  if (apiKeyFile === undefined && apiKeyRef !== undefined) {
    throw new HoldfastError('HF_CONTROL_UNREACHABLE', {
      dir: dataDir,
      reason:
        'nothing runs there, and the key of the memory store is in the secrets store, which only it reads',
    });
  }
  const apiKey = async () => (apiKeyFile === undefined ? undefined : readTokenFile(apiKeyFile));
  const stores = new RestStores({
    kind: 'remote',
    collection,
    caFile,
    clock: systemClock,
    url: () => url,
    apiKey,
  });
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

type Direct = (stores: RestStores, signal: AbortSignal) => Promise<Record<string, unknown>>;

const NO_SEEDS = () => [];

/** The same answers as a running instance gives, as far as they can be had without one. */
export const direct = {
  snapshot: async (stores, signal) => ({
    ...(await stores.live.createSnapshot(stores.collection, signal)),
    recorded: false,
  }),
  list: async (stores, signal) => {
    const listed = await listBackups({ stores, seeds: NO_SEEDS }, 'snapshot', signal);
    const backups = listed.toSorted(newestFirst).map(({ name, at, size }) => ({
      kind: 'snapshot',
      name,
      at: new Date(at).toISOString(),
      size,
      recorded: false,
    }));
    return { collection: stores.collection, backups };
  },
  seed: async (stores, signal) => {
    const seeds = await seed(stores.live, stores.collection, signal);
    return {
      collection: stores.collection,
      seeds,
      count: await stores.live.count(stores.collection, signal),
    };
  },
} as const satisfies Record<string, Direct>;

/** Only a dry run, or what is beyond the newest so many: which one is known to be good, only the log knows. */
export async function pruneDirectly(
  options: QdrantOptions,
  stores: RestStores,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const listed = await listBackups({ stores, seeds: NO_SEEDS }, 'snapshot', signal);
  const doomed = doomedOf(listed, [], settingsOf('snapshot', options), Date.now());
  if (!dryRun) for (const name of doomed) await stores.live.deleteSnapshot(stores.collection, name, signal);
  return { dryRun, deleted: { snapshot: doomed } };
}
