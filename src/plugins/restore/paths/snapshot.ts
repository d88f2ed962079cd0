import { statfs } from 'node:fs/promises';
import type {
  MemoryStore,
  MemoryStores,
  ScratchStores,
  SnapshotDescription,
  SnapshotRecords,
} from '../../../core/contracts/memory-store.ts';
import type { Drill, Source } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';
import { refuseFilled, refuseLiveAddress, refuseLiveInstance } from '../safety.ts';
import type { PathSettings, RestorePath, StepContext } from '../steps.ts';
import { scratchLeftovers, until } from '../steps.ts';

const SPARE_BYTES = 64 * 1024 * 1024;

interface SnapshotPathOptions extends PathSettings {
  readonly stores: MemoryStores;
  readonly scratch: ScratchStores;
  readonly records: SnapshotRecords | undefined;
  /** Where scratch instances of this process lie. */
  readonly dataDir: string;
  /** Bytes that an instance elsewhere has room for. */
  readonly claimBytes?: number;
  /** A snapshot's URL as the scratch instance sees it. */
  readonly location: (name: string) => string;
}

/** Path A: a scratch instance fetches a snapshot from the live store (B2). */
export class SnapshotPath implements RestorePath {
  readonly #options: SnapshotPathOptions;

  constructor(options: SnapshotPathOptions) {
    this.#options = options;
  }

  async choose({ snapshot: wanted }: Drill, { signal, progress }: StepContext): Promise<Source> {
    const { stores, records } = this.#options;
    const { live, collection } = stores;
    let listed = await this.#listed(signal);
    if (listed?.length === 0 && wanted === undefined && stores.kind === 'embedded' && records) {
      // The first drill of a store needs a backup to show something.
      progress.begin('making a first snapshot');
      await records.take(signal);
      listed = await this.#listed(signal);
    }
    if (!listed) {
      const reason = `${live.url} has no collection ${collection}; store something, or write known points with \`holdfast backup seed --synthetic\``;
      throw new RestoreError('HF_RESTORE_NOTHING', { reason });
    }
    progress.begin('recording snapshots that others made');
    await records?.recordSeen(signal);
    const chosen = wanted === undefined ? this.#newest(listed) : listed.find(({ name }) => name === wanted);
    if (chosen === undefined) {
      const reason =
        wanted === undefined
          ? `${live.url} has no snapshot of ${collection}`
          : `no snapshot is called ${wanted}`;
      throw new RestoreError('HF_RESTORE_NOTHING', { reason });
    }
    const { name, size, createdAt } = chosen;
    await this.#checkRoom(size);
    const record = records?.of(name);
    const madeAt = record ? new Date(record.at).toISOString().slice(0, 19) : createdAt;
    return {
      kind: 'snapshot',
      name,
      size,
      ...(madeAt !== undefined && { madeAt }),
      ...(record && { count: record.content.count }),
      ...(record?.seenAt !== undefined && { seenAt: record.seenAt }),
    };
  }

  async prepare({ id }: Drill, _source: Source, { signal, progress }: StepContext) {
    const { stores, scratch } = this.#options;
    progress.begin('making a scratch instance');
    const { url } = await scratch.create(id, 'empty', signal);
    await refuseLiveAddress(stores.live.url, url);
    progress.begin('waiting for it to be ready');
    await this.#ready(stores.at(url), signal);
    return { place: `${scratch.kind} scratch instance at ${url}`, url };
  }

  async recover(_drill: Drill, { name, size }: Source, url: string | undefined, context: StepContext) {
    const { stores, location } = this.#options;
    if (url === undefined) throw new RestoreError('HF_RESTORE_FAILED', { reason: 'there is no instance' });
    const target = stores.at(url);
    // Again, right before the one call that overwrites: names may resolve differently by now.
    await refuseLiveAddress(stores.live.url, url);
    await refuseLiveInstance(stores.live, target, context.signal);
    await refuseFilled(target, stores.collection, context.signal);
    const extent = size === undefined ? {} : ({ total: size, unit: 'bytes' } as const);
    context.progress.begin(`recovering from ${name}`, extent);
    await target.recover(stores.collection, location(name), context.signal);
    return url;
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return this.#options.scratch.remove(id, signal);
  }

  leftovers(signal: AbortSignal): Promise<readonly string[]> {
    return scratchLeftovers(this.#options.scratch, this.#options.clock, signal);
  }

  /** Undefined when the collection does not exist. */
  async #listed(signal: AbortSignal): Promise<readonly SnapshotDescription[] | undefined> {
    const { live, collection } = this.#options.stores;
    if ((await live.collection(collection, signal)) === undefined) return undefined;
    return live.snapshots(collection, signal);
  }

  /** By the time of its record, else by what the store says; empty snapshots do not count. */
  #newest(listed: readonly SnapshotDescription[]): SnapshotDescription | undefined {
    const madeAt = ({ name, createdAt = '' }: SnapshotDescription) => {
      const record = this.#options.records?.of(name);
      return record ? new Date(record.at).toISOString() : createdAt;
    };
    const keyOf = (one: SnapshotDescription) => `${madeAt(one)} ${one.name}`;
    return listed
      .filter(({ size }) => size > 0)
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1))
      .at(0);
  }

  async #ready(target: MemoryStore, signal: AbortSignal): Promise<void> {
    const { clock, readyMs, pollMs } = this.#options;
    const look = async () => ((await target.ready(signal).catch(() => false)) ? true : undefined);
    if (await until(look, { clock, everyMs: pollMs, withinMs: readyMs, signal })) return;
    const reason = `it is not ready after ${readyMs / 1_000} s`;
    throw new RestoreError('HF_RESTORE_SCRATCH', { reason });
  }

  /** The file that is fetched and the collection made of it lie beside each other for a moment. */
  async #checkRoom(size: number): Promise<void> {
    const { scratch, dataDir, claimBytes } = this.#options;
    const needed = 2 * size + SPARE_BYTES;
    const here = scratch.kind === 'embedded';
    if (!here && claimBytes === undefined) return;
    const free = here ? await freeBytes(dataDir) : (claimBytes ?? 0);
    if (free >= needed) return;
    const place = here ? dataDir : 'the claim of a scratch instance';
    throw new RestoreError('HF_RESTORE_SPACE', { needed, free, place });
  }
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
