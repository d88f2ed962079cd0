/**
 * The memory store: the adapter for its REST surface (`rest-store.ts`), for a store elsewhere (HOLDFAST_MEMORY_URL) and
 * the embedded one alike; its backups (`backups/`), decided by `machines/memory/backups.ts`; and `holdfast doctor memory`
 * (`doctor.ts`).
 */

import { join } from 'node:path';
import { consolePages } from '../../core/contracts/console.ts';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { mcpRoutes } from '../../core/contracts/mcp-routes.ts';
import {
  MemoryInstanceToken,
  MemoryStoresToken,
  SnapshotRecordsToken,
} from '../../core/contracts/memory-store.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { parseSecretReference } from '../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import {
  type BackupKind,
  backupsChecked,
  registerBackupActors,
  registerBackupMetrics,
  startSchedules,
} from './backups/actor.ts';
import type { StatusAnswer } from './backups/answers.ts';
import { registerBackupCommands } from './backups/commands.ts';
import { ContentLists } from './backups/content.ts';
import { Backups, registerBackupControl } from './backups/control.ts';
import { registerBackupEffects } from './backups/effects.ts';
import { VolumeCopies } from './backups/files.ts';
import { collectionsPage } from './collections-page.ts';
import { backupsPage } from './console-page.ts';
import { DeploymentChecks, memoryChecks } from './doctor.ts';
import { MemoryError } from './errors.ts';
import { type MemoryOptions, memoryOptions } from './options.ts';
import { RestStores } from './rest-store.ts';
import { TextIndex } from './text-index.ts';

/** Reading a large collection takes minutes. */
const LOOK_MS = 900_000;

/**
 * The plugin `memory`: backs up a memory store: snapshots, volume copies, pruning.
 *
 * @example memory({ url: 'http://qdrant.agent-memory:6333', apiKeyRef: 'memory/qdrant#api_key' })
 * @public
 */
export const memory = definePlugin({
  name: 'memory',
  about: {
    area: 'Memory store',
    what: 'backs up a memory store: snapshots, volume copies, pruning',
    docs: 'memory.md',
  },
  options: memoryOptions,
  errors: MemoryError,
  env: {
    HOLDFAST_MEMORY_URL: 'url',
    HOLDFAST_MEMORY_API_KEY_FILE: 'apiKeyFile',
    HOLDFAST_MEMORY_CA_FILE: 'caFile',
    HOLDFAST_MEMORY_INSECURE: 'insecure',
  },
  variables: {
    HOLDFAST_MEMORY_URL: 'A memory store elsewhere, instead of the embedded one.',
    HOLDFAST_MEMORY_API_KEY_FILE: 'File (mode 0600) with its key.',
    HOLDFAST_MEMORY_CA_FILE: 'Authority of its certificate.',
    HOLDFAST_MEMORY_INSECURE: 'Whether its key may go to another machine over http; not unless `true`.',
  },
  provides: [MemoryStoresToken, SnapshotRecordsToken],
  wants: [MemoryInstanceToken, SecretsStoreToken, KubernetesToken],
  onFailure: 'continue',
  hostBound: ({ url }) => url === undefined,
  start(services, options) {
    const stores = openStores(options, services);
    const instance = options.url === undefined ? services.find(MemoryInstanceToken) : undefined;
    const copies = instance && new VolumeCopies(services.dataDir, instance);
    // The volume of a store elsewhere is copied by its cluster.
    const kinds: readonly BackupKind[] = instance ? ['snapshot', 'volume'] : ['snapshot'];
    const lists = new ContentLists({
      dir: join(services.dataDir, 'backups', 'content'),
      vault: services.vault,
      store: () => stores.live,
      collection: options.collection,
    });
    const backups = new Backups(services, options, { stores, instance, copies, lists }, kinds);
    const deployment = new DeploymentChecks(services, options, stores);
    services.bus.subscribe(backupsChecked, 'memory', ({ payload }) =>
      payload.kind === 'snapshot' ? deployment.run() : undefined,
    );
    registerBackupMetrics(services, kinds);
    const stopSchedules = startSchedules(services, options, kinds, looker(services, backups));
    const texts: { index?: TextIndex } = {}; // of notes, made with the first request
    return { services, stores, texts, backups, sources: backups.sources, deployment, stopSchedules };
  },
  register(context, options) {
    context.provide(MemoryStoresToken, ({ stores }) => stores);
    context.contribute(mcpRoutes, ({ services: { clock }, stores, texts }) => {
      const server = async () => {
        const { live: store, collection } = stores;
        const { memoryServer } = await import('./mcp-server.ts');
        texts.index ??= new TextIndex(store, collection, clock);
        return memoryServer({ store, collection, vectorSize: options.vectorSize, index: texts.index });
      };
      return { name: 'memory', onDemand: true, server, writes: true };
    });
    context.contribute(consolePages, backupsPage);
    context.contribute(consolePages, collectionsPage);
    context.provide(SnapshotRecordsToken, ({ backups }) => backups);
    registerBackupActors(context, options);
    registerBackupEffects(context);
    registerBackupControl(context);
    registerBackupCommands(context, options);
    for (const check of memoryChecks) context.check(check);
    context.health('memory', ({ backups, deployment: { version, seen } }) => {
      const status = backups.status(version);
      return { text: backupsText(status), ...status, ...(seen && { deployment: seen }) };
    });
    context.onStop(({ stores, texts, stopSchedules }) => {
      stopSchedules();
      texts.index?.close();
      return stores.close();
    });
  },
});

/** How old the backups are, for a person. */
function backupsText({ snapshot, volume }: StatusAnswer): string {
  const kinds = Object.entries({ snapshot, volume }).flatMap(([kind, status]) => {
    if (!status) return [];
    const { lastGood, stale, fault } = status;
    const newest = lastGood ? `the last good one is of ${lastGood.at}` : 'no good one yet';
    return [`${kind}: ${newest}${stale ? ', overdue' : ''}${fault === undefined ? '' : ` (${fault})`}`];
  });
  return kinds.join('; ');
}

/** Records the snapshots that others made; only one search runs at a time. */
function looker({ logger }: Services, backups: Backups): () => void {
  let isLooking = false;
  return () => {
    if (isLooking) return;
    isLooking = true;
    backups
      .recordSeen(AbortSignal.timeout(LOOK_MS))
      .catch((error: unknown) => {
        // A store that does not answer is tried again later.
        const reason = isCoded(error) ? error.what : String(error);
        logger.warn({ reason }, 'memory.snapshots_not_recorded');
      })
      .finally(() => {
        isLooking = false;
      });
  };
}

function openStores(options: MemoryOptions, services: Services): RestStores {
  const { url, collection, caFile, insecure } = options;
  const { clock } = services;
  if (url !== undefined) {
    return new RestStores({
      kind: 'remote',
      collection,
      caFile,
      insecure,
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
    insecure: true, // an address of this machine
    clock,
    url: () => instance.url,
    pin: () => instance.pin,
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
