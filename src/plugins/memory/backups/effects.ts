import { asRun } from '../../../core/contracts/jobs.ts';
import type { MemoryInstance, MemoryStores } from '../../../core/contracts/memory-store.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../../core/kernel/json.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type {
  Backup,
  BackupParams,
  ListedBackup,
  PruneParams,
} from '../../../machines/memory/backups-shapes.ts';
import { factsOf, sampleIds, unchanged } from './facts.ts';
import { ofOurShape, snapshotTime } from './names.ts';
import type { VolumeCopies } from './volume.ts';

/** A snapshot, with the readings around it. */
const MAKE_MS = 900_000;
const LIST_MS = 60_000;
const PRUNE_MS = 300_000;

/** Why there is no backup of a store of ours that nobody has used yet. */
export const EMPTY = 'the memory store is empty, nothing was ever stored in it';

/** What `holdfast jobs` calls the runs of each kind. */
const RUNS = { snapshot: 'memory-snapshot', volume: 'memory-volume-copy' } as const;

export interface BackupParts {
  readonly stores: MemoryStores;
  readonly instance?: MemoryInstance | undefined;
  readonly copies?: VolumeCopies | undefined;
  readonly seeds: () => readonly (number | string)[];
}

/** Carries out what `machines/snapshot-job.ts` asks for. */
export function registerBackupEffects(context: PluginContext, parts: () => BackupParts): void {
  const backup = async (kind: BackupParams['kind'], signal: AbortSignal): Promise<LogEvent> => {
    const { instance, stores } = parts();
    if (instance && !instance.isUsed()) return nothing(EMPTY);
    if (kind === 'volume') return made(await copiesOf(parts()).make(context.services.clock.now()));
    if (instance && !(await stores.live.collection(stores.collection, signal))) {
      return nothing(`there is no collection ${stores.collection}`);
    }
    return made(await makeSnapshot(context, parts(), signal));
  };
  context.effect<BackupParams>(
    'memory.backup',
    (params, effect) =>
      asRun(context.services, RUNS[params.kind], effect, () => backup(params.kind, effect.signal)),
    // Whether it was made is not known: the machine decides, and another one does no harm.
    { onRecovery: 'fail', deadlineMs: MAKE_MS, adapter: 'memory store' },
  );
  context.effect<BackupParams>(
    'memory.list_backups',
    async ({ kind }, { signal }) => ({
      type: 'LISTED',
      at: context.services.clock.now(),
      listed: (await listBackups(parts(), kind, signal)) as unknown as Json,
    }),
    { onRecovery: 'retry', deadlineMs: LIST_MS, adapter: 'memory store' },
  );
  context.effect<PruneParams>(
    'memory.prune_backups',
    async ({ kind, names }, { signal }) => {
      const { stores } = parts();
      for (const name of names) {
        if (kind === 'volume') await copiesOf(parts()).delete(name);
        else await stores.live.deleteSnapshot(stores.collection, name, signal).catch(unlessGone);
      }
      return { type: 'PRUNED', deleted: [...names] };
    },
    { onRecovery: 'retry', deadlineMs: PRUNE_MS, adapter: 'memory store' },
  );
}

/** What there is of our shape. */
export async function listBackups(
  parts: BackupParts,
  kind: BackupParams['kind'],
  signal: AbortSignal,
): Promise<ListedBackup[]> {
  const { stores, copies, instance } = parts;
  if (kind === 'volume') return [...((await copies?.list()) ?? [])];
  if (instance && !(instance.isUsed() && (await stores.live.collection(stores.collection, signal))))
    return [];
  const all = await stores.live.snapshots(stores.collection, signal);
  return ofOurShape(all, (name) => snapshotTime(stores.collection, name));
}

async function makeSnapshot(
  context: PluginContext,
  parts: BackupParts,
  signal: AbortSignal,
): Promise<Backup> {
  const { stores, seeds } = parts;
  const { live, collection } = stores;
  const { vault, clock } = context.services;
  const ids = { seeds: seeds(), samples: await sampleIds(live, collection, seeds(), signal) };
  const before = await factsOf(live, collection, ids, vault, signal);
  const { version } = await live.about(signal);
  const made = await live.createSnapshot(collection, signal);
  const after = await factsOf(live, collection, ids, vault, signal);
  return {
    name: made.name,
    at: snapshotTime(collection, made.name) ?? clock.now(),
    size: made.size,
    count: before.count,
    ...(after.count !== before.count && { countAfter: after.count }),
    seeds: unchanged(before.seeds, after.seeds),
    samples: unchanged(before.samples, after.samples),
    version,
  };
}

const made = (backup: Backup): LogEvent => ({ type: 'MADE', backup: backup as unknown as Json });
const nothing = (reason: string): LogEvent => ({ type: 'NOTHING_THERE', reason });

/** Deleted by somebody else, or by a run that was interrupted. */
function unlessGone(error: unknown): void {
  if (!(isCoded(error, 'HF_MEMORY_REFUSED') && error.details.status === 404)) throw error;
}

function copiesOf({ copies }: BackupParts): VolumeCopies {
  if (copies) return copies;
  throw new HoldfastError('HF_MEMORY_BACKUP', {
    reason: 'a store elsewhere has its volume copied by its cluster',
  });
}
