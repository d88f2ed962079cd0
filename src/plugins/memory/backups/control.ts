import { z } from 'zod';
import { KubernetesToken } from '../../../core/contracts/kubernetes.ts';
import type {
  PointId,
  RecordedContent,
  RecordedPoint,
  SnapshotRecord,
  SnapshotRecords,
} from '../../../core/contracts/memory-store.ts';
import { Mutex } from '../../../core/host/concurrency.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { StateValue } from '../../../core/kernel/log/record.ts';
import { isAhead } from '../../../machines/backup-age.ts';
import {
  type Backup,
  backupFindings,
  datedBackups,
  expiredBackups,
  newestFirst,
} from '../../../machines/memory/backups-rules.ts';
import { MemoryError } from '../errors.ts';
import type { MemoryOptions } from '../options.ts';
import {
  BACKUPS,
  type BackupKind,
  backupRequested,
  backupState,
  backupsActor,
  collectionSeeded,
  lastDue,
  pruneRequested,
  settingsOf,
} from './actor.ts';
import {
  BACKUP_PATHS,
  type ClusterVolumeStatus,
  type KindStatus,
  type ListAnswer,
  type PruneAnswer,
  type SeedAnswer,
  type SnapshotAnswer,
  type StatusAnswer,
  snapshotAnswer,
} from './answers.ts';
import { goodBackups, recordOfCluster } from './cluster-backups.ts';
import type { Recorded } from './content.ts';
import { listBackups } from './effects.ts';
import { type Inspection, inspectBackups } from './inspect.ts';
import { type BackupSources, recordSnapshots } from './records.ts';
import { chooseSeeds, SEED_VECTOR_SIZE, type SeedRequest, seedRequest } from './seed.ts';

const KINDS: readonly BackupKind[] = ['snapshot', 'volume'];
const REPLY_MS = 900_000;
const LIST_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A check of doctor is given up after 20 s. */
const INSPECT_MS = 15_000;

/**
 * Operations of the running instance for commands and drills. Every operation that changes something goes through the
 * machine.
 */
export class Backups implements SnapshotRecords {
  readonly #services: Services;
  readonly #options: MemoryOptions;
  readonly #sources: BackupSources;
  readonly #kinds: readonly BackupKind[];
  readonly #recording = new Mutex();

  constructor(
    services: Services,
    options: MemoryOptions,
    sources: Omit<BackupSources, 'seeds'>,
    kinds: readonly BackupKind[],
  ) {
    this.#services = services;
    this.#options = options;
    this.#sources = { ...sources, seeds: () => this.seeds };
    this.#kinds = kinds;
  }

  /** @inheritDoc */
  of(backup: string): SnapshotRecord | undefined {
    const record = this.#recorded.find(({ name, content }) => name === backup && content !== undefined);
    if (!record?.content) return undefined;
    const { name, at, seenAt, sha256, unread, count = 0, countAfter, content, seeds = [] } = record;
    return { name, at, seenAt, sha256, unread, content: { count, countAfter, ...content }, seeds };
  }

  /** The backups of both kinds, whoever made them. */
  get #recorded(): readonly Backup[] {
    return KINDS.flatMap((kind) => {
      const { good = [], seen = [] } = this.#state(kind)?.context ?? {};
      return [...good, ...seen];
    });
  }

  /** @inheritDoc */
  async volumeCopies() {
    const { copies } = this.#sources;
    const listed = [...((await copies?.list()) ?? [])].sort(newestFirst);
    return listed.flatMap(({ name }) => {
      const record = this.of(name);
      return copies && record ? [{ record, file: copies.fileOf(name) }] : [];
    });
  }

  /** @inheritDoc */
  digest(backup: string, signal: AbortSignal): Promise<{ readonly sha256: string }> {
    const { copies, stores } = this.#sources;
    if (copies?.isCopy(backup)) return copies.digest(backup, signal);
    return stores.live.snapshotDigest(stores.collection, backup, signal);
  }

  get seeds(): readonly PointId[] {
    return this.#options.seeds?.ids ?? this.#state('snapshot')?.context.seeds ?? [];
  }

  /** @inheritDoc */
  points(content: RecordedContent): AsyncIterable<readonly RecordedPoint[]> {
    return this.#sources.lists.points(content);
  }

  /** @inheritDoc */
  recordDuring<T>(work: () => Promise<T>, signal: AbortSignal): Promise<Recorded<T>> {
    return this.#sources.lists.recordDuring(work, this.seeds, signal);
  }

  /** @inheritDoc */
  recordSeen(signal: AbortSignal): Promise<void> {
    return this.#recording.run(async () => {
      const { clock, actors } = this.#services;
      // A run records its own snapshot.
      if (typeof this.#state('snapshot')?.value === 'string') return;
      const isRecorded = (name: string) => this.of(name) !== undefined;
      const backups = await recordSnapshots(this.#sources, isRecorded, () => clock.now(), signal);
      if (backups.length > 0) {
        await actors.send(backupsActor, 'snapshot', { type: 'SEEN', backups }).durable();
      }
      await this.#recordOfCluster(signal);
      const lists = this.#recorded.flatMap(({ content }) => (content ? [content.list] : []));
      await this.#sources.lists.sweep(new Set(lists), clock.now());
    });
  }

  /** Backups of the volume that the cluster made; a cluster that cannot be read is asked again by the next look. */
  async #recordOfCluster(signal: AbortSignal): Promise<void> {
    const { stores, lists } = this.#sources;
    const { find, clock, actors, logger } = this.#services;
    const cluster = stores.kind === 'remote' ? find(KubernetesToken) : undefined;
    if (!cluster) return;
    try {
      const { good, whole } = await goodBackups(cluster, this.#options.deployment, signal);
      const unrecorded = good.filter(({ name }) => this.of(name) === undefined);
      const { seen = [] } = this.#state('volume')?.context ?? {};
      const isThere = (name: string) => good.some((one) => one.name === name);
      const gone = whole ? seen.map(({ name }) => name).filter((name) => !isThere(name)) : [];
      const hasCollection = (await stores.live.collection(stores.collection, signal)) !== undefined;
      const isNew = unrecorded.length > 0 && hasCollection;
      if (!isNew && gone.length === 0) return;
      const recorded = isNew
        ? await lists.recordDuring(async () => clock.now(), this.seeds, signal)
        : undefined;
      const backups = recorded ? unrecorded.map((backup) => recordOfCluster(backup, recorded)) : [];
      await actors.send(backupsActor, 'volume', { type: 'SEEN', backups, gone }).durable();
    } catch (error) {
      if (!isCoded(error) || signal.aborted) throw error;
      logger.warn({ reason: error.what }, 'memory.volume_backups_not_recorded');
    }
  }

  /** @inheritDoc */
  async take(_signal: AbortSignal): Promise<string> {
    return (await this.snapshot(newCorrelation())).name;
  }

  /** Makes a snapshot now. @throws HF_MEMORY_BACKUP it could not be made, or a run is under way */
  async snapshot(request: string): Promise<SnapshotAnswer> {
    const { bus, clock } = this.#services;
    const answer = await this.#decided(request, () =>
      bus.publish(
        backupRequested,
        { kind: 'snapshot', at: clock.now(), by: 'command', request },
        { correlation: request },
      ),
    );
    return snapshotAnswer.parse(answer);
  }

  /** All backups, newest first, with what was recorded of each. */
  async list(signal: AbortSignal): Promise<ListAnswer> {
    const rows = await Promise.all(
      this.#kinds.map(async (kind) => {
        const { good = [], seen = [] } = this.#state(kind)?.context ?? {};
        const listed = await listBackups(this.#sources, kind, signal);
        return listed.toSorted(newestFirst).map(({ name, at, size }) => {
          const record = [...good, ...seen].find((one) => one.name === name);
          return {
            kind,
            name,
            at: new Date(record?.at ?? at).toISOString(),
            size,
            recorded: record !== undefined,
            ...(record?.seenAt !== undefined && { seenAt: new Date(record.seenAt).toISOString() }),
            ...(record?.count !== undefined && { count: record.count }),
          };
        });
      }),
    );
    // A store elsewhere has no copies of ours: what its cluster made is known by its records.
    const { seen: ofCluster = [] } = this.#kinds.includes('volume')
      ? {}
      : (this.#state('volume')?.context ?? {});
    const others = ofCluster.map(({ name, at, size, seenAt, count }) => ({
      ...{ kind: 'volume' as const, name, at: new Date(at).toISOString(), size, recorded: true },
      ...(seenAt !== undefined && { seenAt: new Date(seenAt).toISOString() }),
      ...(count !== undefined && { count }),
    }));
    return { collection: this.#sources.stores.collection, backups: [...rows.flat(), ...others] };
  }

  /** @throws HF_MEMORY_BACKUP a run is under way */
  async prune(request: string, dryRun: boolean, signal: AbortSignal): Promise<PruneAnswer> {
    const { bus, clock } = this.#services;
    const deleted: Partial<Record<BackupKind, readonly string[]>> = {};
    for (const kind of this.#kinds) {
      if (dryRun) {
        const { good = [], datedAt } = this.#state(kind)?.context ?? {};
        const now = clock.now();
        const listed = await listBackups(this.#sources, kind, signal);
        const dated = datedBackups(listed, datedAt ? { datedAt } : {}, now);
        deleted[kind] = expiredBackups(dated, good, settingsOf(kind, this.#options), now);
        continue;
      }
      const own = `${request}.${kind}`;
      const answer = await this.#decided(own, () =>
        bus.publish(pruneRequested, { kind, at: clock.now(), request: own }, { correlation: request }),
      );
      deleted[kind] = z.object({ deleted: z.array(z.string()) }).parse(answer).deleted;
    }
    return { dryRun, deleted };
  }

  /** Chooses seeds, or writes known ones. @throws HF_MEMORY_SEEDS, HF_MEMORY_* as the store answers */
  async seed(request: SeedRequest, signal: AbortSignal, correlation: string): Promise<SeedAnswer> {
    const { live, collection, kind } = this.#sources.stores;
    if (request.synthetic && kind === 'embedded' && !(await live.collection(collection, signal))) {
      await live.createCollection(collection, SEED_VECTOR_SIZE, signal);
    }
    const seeds = await chooseSeeds(live, collection, request, this.#options.seeds?.ids, signal);
    this.#services.bus.publish(collectionSeeded, { ids: seeds }, { correlation });
    return { collection, seeds, count: await live.count(collection, signal) };
  }

  /** The newest good backup of each kind, and what is wrong. @param version that the live store reported */
  status(version?: string): StatusAnswer {
    const statusOf = (kind: BackupKind): KindStatus => {
      const { value, context } = this.#state(kind) ?? {};
      const newest = context?.good[0];
      const due = lastDue(kind, this.#options, this.#services.clock.now());
      return {
        state: value === undefined ? 'idle' : innermost(value),
        ...(newest && {
          lastGood: {
            name: newest.name,
            at: new Date(newest.at).toISOString(),
            size: newest.size,
            ...(newest.count !== undefined && { count: newest.count }),
          },
        }),
        lastDue: new Date(due).toISOString(),
        kept: context?.good.length ?? 0,
        stale: context?.isStale ?? false,
        ...(context?.fault !== undefined && { fault: context.fault }),
        findings: context ? backupFindings({ ...context, now: this.#services.clock.now() }, version) : [],
      };
    };
    const kinds = Object.fromEntries(this.#kinds.map((kind) => [kind, statusOf(kind)]));
    const clusterVolume = this.#sources.stores.kind === 'remote' ? this.#clusterVolume() : undefined;
    return { ...kinds, ...(clusterVolume && { clusterVolume }), seeds: this.seeds.length };
  }

  #clusterVolume(): ClusterVolumeStatus {
    const { clock, find } = this.#services;
    const { deployment, staleHours } = this.#options;
    const now = clock.now();
    const seen = (this.#state('volume')?.context.seen ?? []).toSorted(newestFirst);
    const ahead = seen.filter(({ at }) => isAhead(at, now)).map(({ name }) => name);
    const newest = seen.find(({ at }) => !isAhead(at, now));
    const schedule = deployment.backupSchedule;
    const unknown = find(KubernetesToken) ? 'none was seen yet' : 'no cluster is configured';
    return {
      schedule,
      ...(newest ? { newest: { name: newest.name, at: new Date(newest.at).toISOString() } } : { unknown }),
      recorded: seen.length,
      stale: newest !== undefined && now - newest.at > staleHours * HOUR_MS,
      findings: ahead.length > 0 ? [`dated in the future: ${ahead.join(', ')}`] : [],
    };
  }

  /** Reads the newest good backup of each kind again. */
  inspect(signal: AbortSignal): Promise<Inspection> {
    return inspectBackups(
      this.#kinds.map((kind) => ({
        kind,
        newest: this.#state(kind)?.context.good[0],
        list: () => listBackups(this.#sources, kind, signal),
        digest: (name) => this.digest(name, signal),
      })),
    );
  }

  /** What the effects of the machine work with. */
  get sources(): BackupSources {
    return this.#sources;
  }

  #state(kind: BackupKind) {
    return backupState(this.#services, kind);
  }

  /** Publishes a request, and waits for the machine's answer. */
  async #decided(request: string, publish: () => void): Promise<unknown> {
    const answer = this.#services.pendingReplies.open(request, REPLY_MS);
    publish();
    const { status, body } = await answer;
    if (status === 200) return body;
    const { reason = String(status) } = z.object({ reason: z.string() }).partial().safeParse(body).data ?? {};
    throw new MemoryError('HF_MEMORY_BACKUP', { reason: reason.replace(/\.$/, '') });
  }
}

export function registerBackupControl(context: PluginContext<{ readonly backups: Backups }>): void {
  const noFields = z.strictObject({});
  const pruneFields = z.strictObject({ dryRun: z.boolean().default(false) });
  const deadline = () => AbortSignal.timeout(LIST_MS);
  context.control((surface, { backups }) => {
    serveOperation(surface, BACKUP_PATHS.snapshot, noFields, (_fields, { correlation }) =>
      backups.snapshot(correlation),
    );
    serveOperation(surface, BACKUP_PATHS.list, noFields, () => backups.list(deadline()));
    serveOperation(surface, BACKUP_PATHS.seed, seedRequest, (fields, { correlation }) =>
      backups.seed(fields, deadline(), correlation),
    );
    serveOperation(surface, BACKUP_PATHS.status, noFields, () => backups.status());
    serveOperation(surface, BACKUP_PATHS.inspect, noFields, (_fields, { signal }) =>
      backups.inspect(AbortSignal.any([signal, AbortSignal.timeout(INSPECT_MS)])),
    );
    serveOperation(surface, BACKUP_PATHS.prune, pruneFields, ({ dryRun }, { correlation }) =>
      backups.prune(correlation, dryRun, deadline()),
    );
  }, BACKUPS);
}

/** `done` of `{ resting: 'done' }`. */
function innermost(value: StateValue): string {
  return typeof value === 'string' ? value : innermost(Object.values(value)[0] ?? '');
}
