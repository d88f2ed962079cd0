import { z } from 'zod';
import type { SnapshotRecords } from '../../../core/contracts/memory-store.ts';
import type { Reply } from '../../../core/host/http/exchanges.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../../core/kernel/ids.ts';
import { doomedOf, findingsOf, newestFirst } from '../../../machines/memory/assessment.ts';
import { MemoryError } from '../errors.ts';
import type { QdrantOptions } from '../options.ts';
import {
  backupAsked,
  backupState,
  type Kind,
  lastDue,
  pruneRequested,
  seedsKept,
  settingsOf,
} from './actor.ts';
import { type BackupParts, listBackups } from './effects.ts';
import { SEED_SIZE, seed } from './seed.ts';

/** The paths that `holdfast backup …` posts to. */
export const BACKUP_PATHS = {
  snapshot: '/memory/backup/snapshot',
  list: '/memory/backup/list',
  prune: '/memory/backup/prune',
  seed: '/memory/backup/seed',
  status: '/memory/backup/status',
} as const;

const REPLY_MS = 900_000;
const LIST_MS = 60_000;
const nothing = z.strictObject({});
const prune = z.strictObject({ dryRun: z.boolean().default(false) });

/** What the commands, and drills, ask of the running instance: whatever changes something goes through the machine. */
export class Backups implements SnapshotRecords {
  readonly #context: PluginContext;
  readonly #options: QdrantOptions;
  readonly #parts: () => BackupParts;
  readonly #kinds: () => readonly Kind[];

  constructor(
    context: PluginContext,
    options: QdrantOptions,
    parts: () => BackupParts,
    kinds: () => readonly Kind[],
  ) {
    this.#context = context;
    this.#options = options;
    this.#parts = parts;
    this.#kinds = kinds;
  }

  of(snapshot: string) {
    const known = backupState(this.#context.services, 'snapshot')?.context.good.find(
      ({ name }) => name === snapshot,
    );
    if (!known) return undefined;
    const { name, at, count = 0, countAfter, seeds = [], samples = [] } = known;
    return { name, at, count, countAfter, seeds, samples };
  }

  get seeds(): readonly (number | string)[] {
    return backupState(this.#context.services, 'snapshot')?.context.seeds ?? [];
  }

  async take(signal: AbortSignal): Promise<string> {
    const { stores } = this.#parts();
    const fresh = stores.kind === 'embedded' && !(await stores.live.collection(stores.collection, signal));
    if (fresh || this.seeds.length === 0) await this.seed(signal);
    const { name } = await this.snapshot(newCorrelation());
    return String(name);
  }

  /** @throws HF_MEMORY_BACKUP */
  async snapshot(request: string): Promise<Record<string, unknown>> {
    const { bus, clock } = this.#context.services;
    return this.#decided(request, () =>
      bus.publish(
        backupAsked,
        { kind: 'snapshot', at: clock.now(), by: 'command', request },
        { correlation: request },
      ),
    );
  }

  /** What there is, newest first, each with what was recorded of it. */
  async list(signal: AbortSignal): Promise<Record<string, unknown>> {
    const parts = this.#parts();
    const rows = await Promise.all(
      this.#kinds().map(async (kind) => {
        const good = backupState(this.#context.services, kind)?.context.good ?? [];
        const listed = await listBackups(parts, kind, signal);
        return listed.toSorted(newestFirst).map(({ name, at, size }) => {
          const known = good.find((one) => one.name === name);
          return {
            kind,
            name,
            at: new Date(at).toISOString(),
            size,
            recorded: known !== undefined,
            count: known?.count,
          };
        });
      }),
    );
    return { collection: parts.stores.collection, backups: rows.flat() };
  }

  async prune(request: string, dryRun: boolean, signal: AbortSignal): Promise<Record<string, unknown>> {
    const { bus, clock } = this.#context.services;
    const deleted: Record<string, unknown> = {};
    for (const kind of this.#kinds()) {
      if (dryRun) {
        const good = backupState(this.#context.services, kind)?.context.good ?? [];
        const listed = await listBackups(this.#parts(), kind, signal);
        deleted[kind] = doomedOf(listed, good, settingsOf(kind, this.#options), clock.now());
        continue;
      }
      const story = `${request}.${kind}`;
      const reply = await this.#decided(story, () =>
        bus.publish(pruneRequested, { kind, at: clock.now(), request: story }, { correlation: request }),
      );
      deleted[kind] = reply.deleted;
    }
    return { dryRun, deleted };
  }

  /** @throws HF_MEMORY_BACKUP, HF_MEMORY_* of the store */
  async seed(signal: AbortSignal): Promise<Record<string, unknown>> {
    const { stores } = this.#parts();
    const { live, collection, kind } = stores;
    if (kind === 'embedded' && !(await live.collection(collection, signal))) {
      await live.createCollection(collection, SEED_SIZE, signal);
    }
    const ids = await seed(live, collection, signal);
    this.#context.services.bus.publish(seedsKept, { ids });
    return { collection, seeds: ids, count: await live.count(collection, signal) };
  }

  /** Of each kind: the newest good one, and whether all is well. @param version that the live store was seen to have */
  status(version?: string): Record<string, unknown> {
    const { clock } = this.#context.services;
    const now = clock.now();
    const kinds = this.#kinds().map((kind) => {
      const known = backupState(this.#context.services, kind);
      const newest = known?.context.good[0];
      return [
        kind,
        {
          state: known ? stateText(known.value) : 'idle',
          lastGood: newest && {
            name: newest.name,
            at: new Date(newest.at).toISOString(),
            size: newest.size,
            count: newest.count,
          },
          lastDue: new Date(lastDue(kind, this.#options, now)).toISOString(),
          kept: known?.context.good.length ?? 0,
          stale: known?.context.isStale ?? false,
          fault: known?.context.fault,
          findings: known ? findingsOf(known.context, version) : [],
        },
      ];
    });
    return { ...Object.fromEntries(kinds), seeds: this.seeds.length };
  }

  async #decided(request: string, publish: () => void): Promise<Record<string, unknown>> {
    const answer = this.#context.services.exchanges.open(request, REPLY_MS);
    publish();
    const { status, body }: Reply = await answer;
    const said = body as Record<string, unknown>;
    if (status === 200) return said;
    throw new MemoryError('HF_MEMORY_BACKUP', { reason: String(said.reason ?? status).replace(/\.$/, '') });
  }
}

export function registerBackupControl(context: PluginContext, backups: () => Backups): void {
  context.control((surface) => {
    const within = () => AbortSignal.timeout(LIST_MS);
    serveOperation(surface, BACKUP_PATHS.snapshot, nothing, (_asked, { correlation }) =>
      backups().snapshot(correlation),
    );
    serveOperation(surface, BACKUP_PATHS.list, nothing, () => backups().list(within()));
    serveOperation(surface, BACKUP_PATHS.seed, nothing, () => backups().seed(within()));
    serveOperation(surface, BACKUP_PATHS.status, nothing, () => backups().status());
    serveOperation(surface, BACKUP_PATHS.prune, prune, ({ dryRun }, { correlation }) =>
      backups().prune(correlation, dryRun, within()),
    );
  });
}

function stateText(value: unknown): string {
  if (typeof value === 'string') return value;
  const [inner] = Object.values(value as Record<string, unknown>);
  return String(inner);
}
