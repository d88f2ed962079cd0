import type { ConsolePage } from '../../core/contracts/console.ts';
import type { MemoryInstance, MemoryStores } from '../../core/contracts/memory-store.ts';

/** The longest wait for the store, milliseconds. */
const DEADLINE_MS = 5_000;

/** The collection that is kept, as the live store answers now: it is asked, so that only a running instance has it. */
export function collectionsPage({
  stores,
  sources: { instance },
}: {
  readonly stores: MemoryStores;
  readonly sources: { readonly instance?: Pick<MemoryInstance, 'isUsed'> | undefined };
}): ConsolePage {
  return {
    name: 'memory-collections',
    title: 'Memory collections',
    isCostly: true,
    data: async ({ isNow, signal }) => {
      if (!isNow)
        return [{ kind: 'text', text: 'The store is asked now alone: no record says what it held.' }];
      // Asked, an embedded store that nobody uses would begin to run.
      if (instance?.isUsed() === false) return [{ kind: 'text', text: 'Nothing was stored yet.' }];
      const { live, collection, kind } = stores;
      const within = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
      const [about, info] = await Promise.all([live.about(within), live.collection(collection, within)]);
      const [points, snapshots] = info
        ? await Promise.all([live.count(collection, within), live.snapshots(collection, within)])
        : [0, []];
      return [
        {
          kind: 'facts',
          facts: [
            { label: 'store', value: `${about.title} ${about.version}, ${kind}`, status: 'ok' },
            { label: 'address', value: live.url },
          ],
        },
        {
          kind: 'table',
          title: 'Collections that are kept',
          columns: [
            { name: 'collection', title: 'Collection' },
            { name: 'state', title: 'State' },
            { name: 'points', title: 'Points', format: 'number' },
            { name: 'vectors', title: 'Vectors' },
            { name: 'snapshots', title: 'Snapshots', format: 'number' },
            { name: 'bytes', title: 'Size of the newest', format: 'bytes' },
          ],
          rows: [
            {
              status: info ? (info.status === 'green' ? 'ok' : 'degraded') : 'unknown',
              cells: {
                collection,
                state: info?.status ?? 'is not there yet',
                points: info ? points : null,
                vectors: info ? JSON.stringify(info.vectors) : null,
                snapshots: snapshots.length,
                bytes: newestSize(snapshots),
              },
            },
          ],
        },
      ];
    },
  };
}

function newestSize(
  snapshots: readonly { readonly createdAt?: string | undefined; readonly size: number }[],
) {
  const newest = snapshots.toSorted((a, b) => (a.createdAt ?? '').localeCompare(b.createdAt ?? '')).at(-1);
  return newest?.size ?? null;
}
