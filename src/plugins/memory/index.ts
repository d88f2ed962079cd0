/**
 * The memory store as the rest of Holdfast sees it: one adapter for its REST surface (`store/`), for a real store
 * elsewhere (HOLDFAST_MEMORY_URL) and for the embedded one alike; and its backups (`backups/`), which the machine
 * `machines/snapshot-job.ts` decides about, with their commands and what `holdfast doctor memory` looks at.
 *
 * Imports core, bus and its machine; no other plugin.
 */

import { ClusterToken } from '../../core/contracts/cluster.ts';
import {
  MemoryInstanceToken,
  MemoryStoresToken,
  SnapshotRecordsToken,
} from '../../core/contracts/memory-store.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { parseSecretReference } from '../../core/host/secrets/secret-reference.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../core/kernel/json.ts';
import { readTokenFile } from '../../core/kernel/secret-file.ts';
import {
  backupsWatched,
  deploymentLookedAt,
  type Kind,
  registerBackupActors,
  registerBackupMetrics,
} from './backups/actor.ts';
import { registerBackupCommands } from './backups/commands.ts';
import { Backups, registerBackupControl } from './backups/control.ts';
import { type BackupParts, registerBackupEffects } from './backups/effects.ts';
import { VolumeCopies } from './backups/files.ts';
import { deploymentFindings, memoryChecks } from './doctor.ts';
import { MemoryError } from './errors.ts';
import { type QdrantOptions, qdrantOptions } from './options.ts';
import { RestStores } from './rest-store.ts';

const LOOK_MS = 30_000;

/** @example memory({ url: 'http://qdrant.agent-memory:6333', apiKeyRef: 'memory/qdrant#api_key' }) */
export const memory = definePlugin({
  name: 'memory',
  about: {
    area: 'Memory store',
    what: 'speaks to a memory store: snapshots, volume copies, pruning',
    docs: 'memory.md',
  },
  options: qdrantOptions,
  env: {
    HOLDFAST_MEMORY_URL: 'url',
    HOLDFAST_MEMORY_API_KEY_FILE: 'apiKeyFile',
    HOLDFAST_MEMORY_CA_FILE: 'caFile',
  },
  errors: MemoryError,
  provides: [MemoryStoresToken, SnapshotRecordsToken],
  wants: [MemoryInstanceToken, SecretsStoreToken, ClusterToken],
  onFailure: 'continue',
  register(context, options) {
    const isRemote = options.url !== undefined;
    // The cluster copies the volume of a store elsewhere.
    const kinds = (): readonly Kind[] => (isRemote ? ['snapshot'] : ['snapshot', 'volume']);
    let stores: RestStores | undefined;
    const opened = (): RestStores => {
      stores ??= openStores(options, context.services);
      return stores;
    };
    const backups = new Backups(context, options, () => parts(), kinds);
    const parts = (): BackupParts => {
      const instance = isRemote ? undefined : context.services.find(MemoryInstanceToken);
      const copies = instance && new VolumeCopies(context.services.dataDir, instance);
      return { stores: opened(), instance, copies, seeds: () => backups.seeds };
    };
    context.provide(MemoryStoresToken, opened);
    context.provide(SnapshotRecordsToken, () => backups);

    registerBackupActors(context, options, kinds);
    registerBackupEffects(context, parts);
    registerBackupControl(context, () => backups);
    registerBackupCommands(context, options);
    let deployment: readonly string[] | undefined;
    let version: string | undefined;
    const lookAtDeployment = async (): Promise<void> => {
      const { clock, find, bus } = context.services;
      const cluster = isRemote ? find(ClusterToken) : undefined;
      if (!cluster) return;
      const signal = AbortSignal.timeout(LOOK_MS);
      try {
        const findings = await deploymentFindings(cluster, options, clock.now(), signal);
        deployment = findings;
        bus.publish(deploymentLookedAt, { findings });
      } catch (error) {
        // That it cannot be looked at says nothing of the deployment: told by doctor, not decided about.
        deployment = [String(isCoded(error) ? error.what : error)];
      }
    };
    const look = async (): Promise<void> => {
      const { live } = opened();
      version = (await live.about().catch(() => undefined))?.version ?? version;
      await lookAtDeployment();
    };
    for (const check of memoryChecks) context.check(check);
    context.health(
      'memory',
      () => ({ ...backups.status(version), ...(deployment && { deployment }) }) as Json,
    );
    context.onStart(() => {
      registerBackupMetrics(context.services, kinds);
      context.services.bus.subscribe(backupsWatched, 'memory', ({ payload }) =>
        payload.kind === 'snapshot' ? look() : undefined,
      );
    });
    context.onStop(() => stores?.close());
  },
});

function openStores(options: QdrantOptions, services: Services): RestStores {
  const { url, collection, caFile } = options;
  const { clock } = services;
  if (url !== undefined) {
    return new RestStores({
      kind: 'remote',
      collection,
      caFile,
      clock,
      url: () => url,
      apiKey: keyOf(options, services),
    });
  }
  const instance = services.find(MemoryInstanceToken);
  if (!instance) throw new MemoryError('HF_MEMORY_NONE', { reason: 'no URL is set and none is embedded' });
  return new RestStores({
    kind: 'embedded',
    collection,
    clock,
    url: () => instance.url,
    apiKey: async () => instance.apiKey(),
  });
}

function keyOf({ apiKeyFile, apiKeyRef }: QdrantOptions, services: Services) {
  return async (signal: AbortSignal): Promise<string | undefined> => {
    if (apiKeyFile !== undefined) return readTokenFile(apiKeyFile);
    if (apiKeyRef === undefined) return undefined;
    const { path, property } = parseSecretReference(apiKeyRef);
    const secrets = services.find(SecretsStoreToken);
    if (!secrets)
      throw new MemoryError('HF_MEMORY_NONE', {
        reason: 'its key is in a secrets store that is not there',
      });
    return secrets.read(path, property, signal);
  };
}
