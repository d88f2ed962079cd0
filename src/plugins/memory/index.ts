/**
 * The memory store: the adapter for its REST surface (`rest-store.ts`), for a store elsewhere (HOLDFAST_MEMORY_URL) and
 * the embedded one alike; its backups (`backups/`), decided by `machines/memory/backups.ts`; and `holdfast doctor memory`
 * (`doctor.ts`).
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
import { readTokenFile } from '../../core/kernel/secret-file.ts';
import {
  type BackupKind,
  backupsChecked,
  deploymentChecked,
  registerBackupActors,
  registerBackupMetrics,
} from './backups/actor.ts';
import { registerBackupCommands } from './backups/commands.ts';
import { Backups, registerBackupControl } from './backups/control.ts';
import { type BackupSources, registerBackupEffects } from './backups/effects.ts';
import { VolumeCopies } from './backups/files.ts';
import { deploymentFindings, memoryChecks } from './doctor.ts';
import { MemoryError } from './errors.ts';
import { type MemoryOptions, memoryOptions } from './options.ts';
import { RestStores } from './rest-store.ts';

const CHECK_MS = 30_000;

/** @example memory({ url: 'http://qdrant.agent-memory:6333', apiKeyRef: 'memory/qdrant#api_key' }) */
export const memory = definePlugin({
  name: 'memory',
  about: {
    area: 'Memory store',
    what: 'backs up a memory store: snapshots, volume copies, pruning',
    docs: 'memory.md',
  },
  options: memoryOptions,
  env: {
    HOLDFAST_MEMORY_URL: 'url',
    HOLDFAST_MEMORY_API_KEY_FILE: 'apiKeyFile',
    HOLDFAST_MEMORY_CA_FILE: 'caFile',
  },
  variables: {
    HOLDFAST_MEMORY_URL: 'A memory store elsewhere, in the place of the embedded one.',
    HOLDFAST_MEMORY_API_KEY_FILE: 'File (mode 0600) with its key.',
    HOLDFAST_MEMORY_CA_FILE: 'Authority of its certificate.',
  },
  provides: [MemoryStoresToken, SnapshotRecordsToken],
  wants: [MemoryInstanceToken, SecretsStoreToken, ClusterToken],
  onFailure: 'continue',
  register(context, options) {
    const isRemote = options.url !== undefined;
    // The volume of a store elsewhere is copied by its cluster.
    const kinds: readonly BackupKind[] = isRemote ? ['snapshot'] : ['snapshot', 'volume'];
    let stores: RestStores | undefined;
    const opened = (): RestStores => {
      stores ??= openStores(options, context.services);
      return stores;
    };
    const sources = (): BackupSources => {
      const instance = isRemote ? undefined : context.services.find(MemoryInstanceToken);
      const copies = instance && new VolumeCopies(context.services.dataDir, instance);
      return { stores: opened(), instance, copies, seeds: () => backups.seeds };
    };
    const backups = new Backups(context, options, sources, kinds);
    context.provide(MemoryStoresToken, opened);
    context.provide(SnapshotRecordsToken, () => backups);

    registerBackupActors(context, options, kinds);
    registerBackupEffects(context, sources);
    registerBackupControl(context, () => backups);
    registerBackupCommands(context, options);

    let version: string | undefined;
    let deployment: readonly string[] | undefined;
    const checkDeployment = async (): Promise<void> => {
      const { clock, find, bus } = context.services;
      const cluster = isRemote ? find(ClusterToken) : undefined;
      if (!cluster) return;
      try {
        const signal = AbortSignal.timeout(CHECK_MS);
        const findings = await deploymentFindings(cluster, options, clock.now(), signal);
        deployment = findings;
        bus.publish(deploymentChecked, { findings });
      } catch (error) {
        // A cluster that gives no answer says nothing about the deployment: doctor shows it, the machine is not told.
        deployment = [isCoded(error) ? error.what : String(error)];
      }
    };
    const check = async (): Promise<void> => {
      version =
        (
          await opened()
            .live.about()
            .catch(() => undefined)
        )?.version ?? version;
      await checkDeployment();
    };
    for (const each of memoryChecks) context.check(each);
    context.health('memory', () => ({ ...backups.status(version), ...(deployment && { deployment }) }));
    context.onStart(() => {
      registerBackupMetrics(context.services, kinds);
      context.services.bus.subscribe(backupsChecked, 'memory', ({ payload }) =>
        payload.kind === 'snapshot' ? check() : undefined,
      );
    });
    context.onStop(() => stores?.close());
  },
});

function openStores(options: MemoryOptions, services: Services): RestStores {
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

function keyOf({ apiKeyFile, apiKeyRef }: MemoryOptions, services: Services) {
  return async (signal: AbortSignal): Promise<string | undefined> => {
    if (apiKeyFile !== undefined) return readTokenFile(apiKeyFile);
    if (apiKeyRef === undefined) return undefined;
    const { path, property } = parseSecretReference(apiKeyRef);
    const secrets = services.find(SecretsStoreToken);
    if (!secrets)
      throw new MemoryError('HF_MEMORY_NONE', {
        reason: 'its key is in a secrets store, and no plugin provides one',
      });
    return secrets.read(path, property, signal);
  };
}
