/** The effects of the backups machine: make, list and prune backups. */

import { randomInt, randomUUID } from 'node:crypto';
import type {
  MemoryInstance,
  MemoryStore,
  MemoryStores,
  PointId,
} from '../../../core/contracts/memory-store.ts';
import { publishRun } from '../../../core/host/job-run.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type {
  Backup,
  BackupParams,
  BackupsEvent,
  ListedBackup,
  PointFingerprint,
  PruneParams,
} from '../../../machines/memory/backups-rules.ts';
import { MemoryError } from '../errors.ts';
import { backupsAmong, snapshotTime, type VolumeCopies } from './files.ts';

/** A snapshot, with the readings before and after it. */
const MAKE_MS = 900_000;
const LIST_MS = 60_000;
const PRUNE_MS = 300_000;
/** Points that are fingerprinted beside the seeds: half of them the first by id, half from random places. */
const SAMPLES = 32;

/** Why an embedded store that nobody has used yet has no backup. */
export const EMPTY_STORE = 'the memory store is empty, because nothing was ever stored in it';

/** Names of the runs in `holdfast jobs`. */
const JOBS = { snapshot: 'memory-snapshot', volume: 'memory-volume-copy' } as const;

/** What backups are made with. */
export interface BackupSources {
  readonly stores: MemoryStores;
  /** The embedded store, where that is the live one. */
  readonly instance?: MemoryInstance | undefined;
  readonly copies?: VolumeCopies | undefined;
  readonly seeds: () => readonly PointId[];
}

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
  { clock, vault }: Services,
  signal: AbortSignal,
): Promise<BackupsEvent> {
  const { instance, stores } = sources;
  if (instance && !instance.isUsed()) return { type: 'NOTHING_TO_BACK_UP', reason: EMPTY_STORE };
  if (kind === 'volume') return { type: 'MADE', backup: await copiesOf(sources).make(clock.now()) };
  if (instance && !(await stores.live.collection(stores.collection, signal))) {
    return { type: 'NOTHING_TO_BACK_UP', reason: `there is no collection ${stores.collection}` };
  }
  return { type: 'MADE', backup: await makeSnapshot(sources, vault, clock.now(), signal) };
}

/** The backups of a kind that have names of ours. */
export async function listBackups(
  { stores, copies, instance }: Omit<BackupSources, 'seeds'>,
  kind: BackupParams['kind'],
  signal: AbortSignal,
): Promise<ListedBackup[]> {
  if (kind === 'volume') return [...((await copies?.list()) ?? [])];
  const { live, collection } = stores;
  if (instance && !(instance.isUsed() && (await live.collection(collection, signal)))) return [];
  return backupsAmong(await live.snapshots(collection, signal), (name) => snapshotTime(collection, name));
}

/** Makes a snapshot, and records before and after it what a restore must reproduce. */
async function makeSnapshot(
  { stores, seeds }: BackupSources,
  vault: Vault,
  now: number,
  signal: AbortSignal,
): Promise<Backup> {
  const { live, collection } = stores;
  const ids = { seeds: seeds(), samples: await sampleIds(live, collection, seeds(), signal) };
  const before = await readContent(live, collection, ids, vault, signal);
  const { version } = await live.about(signal);
  const made = await live.createSnapshot(collection, signal);
  const after = await readContent(live, collection, ids, vault, signal);
  return {
    name: made.name,
    at: snapshotTime(collection, made.name) ?? now,
    size: made.size,
    count: before.count,
    ...(after.count !== before.count && { countAfter: after.count }),
    seeds: unchanged(before.seeds, after.seeds),
    samples: unchanged(before.samples, after.samples),
    version,
  };
}

/** What a collection holds at one moment, as far as drills compare it later. */
interface Content {
  readonly count: number;
  readonly seeds: readonly PointFingerprint[];
  readonly samples: readonly PointFingerprint[];
}

async function readContent(
  store: MemoryStore,
  collection: string,
  ids: { readonly seeds: readonly PointId[]; readonly samples: readonly PointId[] },
  vault: Vault,
  signal: AbortSignal,
): Promise<Content> {
  const fingerprints = async (wanted: readonly PointId[]) => {
    const points = wanted.length === 0 ? [] : await store.points(collection, wanted, signal);
    return points.map((point) => ({ id: point.id, fingerprint: vault.fingerprint(point.content) }));
  };
  return {
    count: await store.count(collection, signal),
    seeds: await fingerprints(ids.seeds),
    samples: await fingerprints(ids.samples),
  };
}

/** Ids of some points of a collection, seeds excluded. */
async function sampleIds(
  store: MemoryStore,
  collection: string,
  seeds: readonly PointId[],
  signal: AbortSignal,
): Promise<PointId[]> {
  const { points } = await store.scroll(collection, { limit: SAMPLES / 2, vectors: false }, signal);
  const ids = new Set(points.map(({ id }) => id));
  const count = await store.count(collection, signal);
  for (let taken = 0; taken < SAMPLES / 2 && ids.size < count; taken += 1) {
    // Ids are numbers that begin near 1, or UUIDs that are spread evenly: so both kinds of place are tried in turn.
    const from = taken % 2 === 0 ? randomInt(Math.max(1, count)) : randomUUID();
    const page = await store.scroll(collection, { from, limit: 1, vectors: false }, signal);
    for (const { id } of page.points) ids.add(id);
  }
  return [...ids].filter((id) => !seeds.includes(id));
}

/** The points that were the same in both readings: a snapshot made between the two must have them. */
function unchanged(
  before: readonly PointFingerprint[],
  after: readonly PointFingerprint[],
): PointFingerprint[] {
  return before.filter(({ id, fingerprint }) =>
    after.some((one) => one.id === id && one.fingerprint === fingerprint),
  );
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
