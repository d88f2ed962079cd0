import { randomInt, randomUUID } from 'node:crypto';
import type {
  MemoryInstance,
  MemoryStore,
  MemoryStores,
  PointId,
} from '../../../core/contracts/memory-store.ts';
import { publishRun } from '../../../core/host/job-run.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../../core/kernel/json.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type {
  Backup,
  BackupParams,
  Fingerprinted,
  ListedBackup,
  PruneParams,
} from '../../../machines/memory/backups-shapes.ts';
import { MemoryError } from '../errors.ts';
import { ofOurShape, snapshotTime, type VolumeCopies } from './files.ts';

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
      publishRun(context.services, RUNS[params.kind], effect, () => backup(params.kind, effect.signal)),
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
  throw new MemoryError('HF_MEMORY_BACKUP', {
    reason: 'a store elsewhere has its volume copied by its cluster',
  });
}

/** Half of them the first by id, half from random places. */
const SAMPLES = 32;

/** What a collection holds at one moment, as far as it is compared later. */
export interface Facts {
  readonly count: number;
  readonly seeds: readonly Fingerprinted[];
  readonly samples: readonly Fingerprinted[];
}

/** Ids of some points of a collection. */
export async function sampleIds(
  store: MemoryStore,
  collection: string,
  seeds: readonly PointId[],
  signal: AbortSignal,
): Promise<PointId[]> {
  const { points } = await store.scroll(collection, { limit: SAMPLES / 2, vectors: false }, signal);
  const ids = new Set(points.map(({ id }) => id));
  const count = await store.count(collection, signal);
  for (let taken = 0; taken < SAMPLES / 2 && ids.size < count; taken += 1) {
    // Ids are numbers from somewhere near 1, or UUIDs that are spread evenly: a place of each kind in turn.
    const from = taken % 2 === 0 ? randomInt(Math.max(1, count)) : randomUUID();
    const page = await store.scroll(collection, { from, limit: 1, vectors: false }, signal);
    for (const { id } of page.points) ids.add(id);
  }
  return [...ids].filter((id) => !seeds.includes(id));
}

/** Reads the exact count and the points that are compared. */
export async function factsOf(
  store: MemoryStore,
  collection: string,
  of: { readonly seeds: readonly PointId[]; readonly samples: readonly PointId[] },
  vault: Vault,
  signal: AbortSignal,
): Promise<Facts> {
  const read = async (ids: readonly PointId[]) => {
    const points = ids.length === 0 ? [] : await store.points(collection, ids, signal);
    return points.map((point) => ({ id: point.id, fingerprint: vault.fingerprint(point.content) }));
  };
  return {
    count: await store.count(collection, signal),
    seeds: await read(of.seeds),
    samples: await read(of.samples),
  };
}

/** Of two readings, what was the same in both: whatever the moment between them that a snapshot shows, it has these. */
export function unchanged(
  before: readonly Fingerprinted[],
  after: readonly Fingerprinted[],
): Fingerprinted[] {
  return before.filter(({ id, fingerprint }) =>
    after.some((one) => one.id === id && one.fingerprint === fingerprint),
  );
}
