import { KubernetesToken } from '../../../core/contracts/kubernetes.ts';
import {
  MemoryStoresToken,
  type ScratchStores,
  ScratchStoresToken,
  SnapshotRecordsToken,
} from '../../../core/contracts/memory-store.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { RestoreError } from '../errors.ts';
import type { RestoreOptions } from '../options.ts';
import { refuseLiveAddress } from '../safety.ts';
import { CLAIM_BYTES, ClusterScratch } from '../scratch/cluster.ts';
import { ConfiguredScratch } from '../scratch/configured.ts';
import { ScratchNamespaces } from '../scratch/namespaces.ts';
import type { RestorePath } from '../steps.ts';
import { BackupPath } from './backup.ts';
import { SnapshotPath } from './snapshot.ts';
import { VolumePath } from './volume.ts';

/** The restore paths that are configured. */
export interface Paths {
  /** @throws HF_RESTORE_SCRATCH there is none */
  a(): RestorePath;
  /** @throws HF_RESTORE_SCRATCH there is none */
  b(): RestorePath;
  has(path: 'a' | 'b'): boolean;
  all(): readonly RestorePath[];
}

/** Finds out what is configured: an embedded store, an instance for drills, a cluster. */
export function openPaths(services: Services, options: RestoreOptions): Paths {
  const { clock, dataDir } = services;
  const { readyMs, pollMs, expiryMs, scratchUrl, cluster: places } = options;
  const stores = services.get(MemoryStoresToken);
  const embedded = stores.kind === 'embedded' ? services.find(ScratchStoresToken) : undefined;
  const cluster = services.find(KubernetesToken);
  const records = services.find(SnapshotRecordsToken);
  const settings = { clock, readyMs, pollMs };
  const { collection } = stores;
  const namespaces = cluster && new ScratchNamespaces({ cluster, clock, pollMs, readyMs, expiryMs });

  const scratch = (): ScratchStores | undefined => {
    if (scratchUrl !== undefined) {
      const refuse = (url: string) => refuseLiveAddress(stores.live.url, url);
      return new ConfiguredScratch({ url: scratchUrl, collection, clock, expiryMs, refuse });
    }
    if (embedded) return embedded;
    return cluster && namespaces && new ClusterScratch(namespaces, cluster, stores, places);
  };
  const snapshotPath = (): RestorePath | undefined => {
    const from = scratch();
    if (!from) return undefined;
    const isInside = from.kind === 'cluster';
    return new SnapshotPath({
      ...settings,
      stores,
      scratch: from,
      records,
      dataDir,
      ...(isInside && { claimBytes: CLAIM_BYTES }),
      location: (name) =>
        locationOf(stores.live.snapshotUrl(collection, name), isInside ? places.liveUrl : undefined),
    });
  };
  const volumePath = (): RestorePath | undefined => {
    if (embedded) return new VolumePath({ ...settings, stores, scratch: embedded, records });
    return (
      cluster && namespaces && new BackupPath({ ...settings, cluster, namespaces, places, stores, records })
    );
  };
  // Opened once: they hold forwarded ports.
  const opened = { a: once(snapshotPath), b: once(volumePath) };
  return {
    a: () =>
      opened.a() ??
      none('the store is elsewhere, and neither HOLDFAST_MEMORY_SCRATCH_URL nor HOLDFAST_KUBECONFIG is set'),
    b: () =>
      opened.b() ??
      none('the store is elsewhere, and without HOLDFAST_KUBECONFIG its volume is out of reach'),
    has: (path) => opened[path]() !== undefined,
    all: () => [opened.a(), opened.b()].filter((path) => path !== undefined),
  };
}

function none(reason: string): never {
  throw new RestoreError('HF_RESTORE_SCRATCH', { reason });
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** @param base how the scratch instance reaches the live store, where that differs from how we do */
function locationOf(url: string, base: string | undefined): string {
  return base === undefined ? url : `${base.replace(/\/+$/, '')}${new URL(url).pathname}`;
}
