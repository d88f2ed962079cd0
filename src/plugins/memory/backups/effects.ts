/** The effects of the backups machine: make, list and prune backups. */

import { publishRun } from '../../../core/host/job-run.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type {
  BackupParams,
  BackupsEvent,
  ListedBackup,
  PruneParams,
} from '../../../machines/memory/backups-rules.ts';
import { MemoryError } from '../errors.ts';
import { backupsAmong, snapshotTime, type VolumeCopies } from './files.ts';
import { type BackupSources, makeSnapshot, makeVolumeCopy } from './records.ts';

/** A snapshot, with the readings before and after it. */
const MAKE_MS = 900_000;
const LIST_MS = 60_000;
const PRUNE_MS = 300_000;

/** Why an embedded store that nobody has used yet has no backup. */
export const EMPTY_STORE = 'the memory store is empty, because nothing was ever stored in it';

/** Names of the runs in `holdfast jobs`. */
const JOBS = { snapshot: 'memory-snapshot', volume: 'memory-volume-copy' } as const;

export function registerBackupEffects(
  context: PluginContext<{ readonly services: Services; readonly sources: BackupSources }>,
): void {
  context.effect<BackupParams>(
    'memory.backup',
    ({ kind }, effect, { services, sources }) =>
      publishRun(services, JOBS[kind], effect, () => makeBackup(kind, sources, services, effect.signal)),
    // After a crash it is unknown whether the backup was made. The machine decides; another backup is harmless.
    { onRecovery: 'fail', deadlineMs: MAKE_MS, adapter: 'memory store' },
  );
  context.effect<BackupParams>(
    'memory.list_backups',
    async ({ kind }, { signal }, { services, sources }): Promise<BackupsEvent> => ({
      type: 'LISTED',
      at: services.clock.now(),
      listed: await listBackups(sources, kind, signal),
    }),
    { onRecovery: 'retry', deadlineMs: LIST_MS, adapter: 'memory store' },
  );
  context.effect<PruneParams>(
    'memory.prune_backups',
    async ({ kind, names }, { signal }, { sources }): Promise<BackupsEvent> => {
      const { live, collection } = sources.stores;
      for (const name of names) {
        if (kind === 'volume') await copiesOf(sources).delete(name);
        else await live.deleteSnapshot(collection, name, signal).catch(unlessGone);
      }
      return { type: 'PRUNED', deleted: [...names] };
    },
    { onRecovery: 'retry', deadlineMs: PRUNE_MS, adapter: 'memory store' },
  );
}

async function makeBackup(
  kind: BackupParams['kind'],
  sources: BackupSources,
  { clock }: Services,
  signal: AbortSignal,
): Promise<BackupsEvent> {
  const { instance, stores } = sources;
  if (instance && !instance.isUsed()) return { type: 'NOTHING_TO_BACK_UP', reason: EMPTY_STORE };
  if (kind === 'volume') {
    return { type: 'MADE', backup: await makeVolumeCopy(sources, copiesOf(sources), clock.now(), signal) };
  }
  if (instance && !(await stores.live.collection(stores.collection, signal))) {
    return { type: 'NOTHING_TO_BACK_UP', reason: `there is no collection ${stores.collection}` };
  }
  return { type: 'MADE', backup: await makeSnapshot(sources, clock.now(), signal) };
}

/** The backups of a kind that have names of ours. */
export async function listBackups(
  { stores, copies, instance }: Omit<BackupSources, 'seeds' | 'lists'>,
  kind: BackupParams['kind'],
  signal: AbortSignal,
): Promise<ListedBackup[]> {
  if (kind === 'volume') return [...((await copies?.list()) ?? [])];
  const { live, collection } = stores;
  if (instance && !(instance.isUsed() && (await live.collection(collection, signal)))) return [];
  return backupsAmong(await live.snapshots(collection, signal), (name) => snapshotTime(collection, name));
}

/** Somebody else deleted it, or an interrupted run did. */
function unlessGone(error: unknown): void {
  if (!(isCoded(error, 'HF_MEMORY_REFUSED') && error.details.status === 404)) throw error;
}

function copiesOf({ copies }: BackupSources): VolumeCopies {
  if (copies) return copies;
  throw new MemoryError('HF_MEMORY_BACKUP', {
    reason: 'the volume of a store elsewhere is copied by its cluster',
  });
}
