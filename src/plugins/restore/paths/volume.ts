import type { MemoryStores, ScratchStores, SnapshotRecords } from '../../../core/contracts/memory-store.ts';
import type { Drill, Source } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';
import { refuseLiveAddress, refuseLiveInstance } from '../safety.ts';
import type { PathSettings, RestorePath, StepContext } from '../steps.ts';
import { scratchLeftovers } from '../steps.ts';

interface VolumePathOptions extends PathSettings {
  readonly stores: MemoryStores;
  readonly scratch: ScratchStores;
  readonly records: SnapshotRecords | undefined;
}

/**
 * Path B where the store is embedded: an instance opened on the newest recorded copy of its volume, or, before there is
 * one, on a copy that is made now; both are crash-consistent (B3).
 */
export class VolumePath implements RestorePath {
  readonly #options: VolumePathOptions;

  constructor(options: VolumePathOptions) {
    this.#options = options;
  }

  async choose({ snapshot: wanted }: Drill, { signal }: StepContext): Promise<Source> {
    const { live, collection } = this.#options.stores;
    const copies = await this.#copies();
    const chosen = wanted === undefined ? copies[0] : copies.find(({ record }) => record.name === wanted);
    if (chosen) {
      const { name, at, content } = chosen.record;
      const madeAt = new Date(at).toISOString().slice(0, 19);
      return { kind: 'volume', name, madeAt, count: content.count };
    }
    if (wanted !== undefined) {
      const reason = `no recorded copy of the volume is called ${wanted}`;
      throw new RestoreError('HF_RESTORE_NOTHING', { reason });
    }
    if ((await live.collection(collection, signal)) === undefined) {
      throw new RestoreError('HF_RESTORE_NOTHING', {
        reason: `${live.url} has no collection ${collection}`,
      });
    }
    return { kind: 'volume', name: `data folder of ${live.url}` };
  }

  async prepare({ id }: Drill, { name }: Source, { signal, progress }: StepContext) {
    const { stores, scratch, records } = this.#options;
    const earlier = (await this.#copies()).find(({ record }) => record.name === name);
    const copy = async () => {
      progress.begin(earlier ? `opening a copy of ${name}` : "copying the store's data");
      const from = earlier ? { file: earlier.file } : 'volume-copy';
      const { url } = await scratch.create(id, from, signal);
      await refuseLiveAddress(stores.live.url, url);
      return { place: `${scratch.kind} scratch instance at ${url}`, url };
    };
    if (!records || earlier) return copy();
    progress.begin('recording what the store holds');
    const { result, content: copied } = await records.recordDuring(copy, signal);
    return { ...result, copied };
  }

  async recover(_drill: Drill, _source: Source, url: string | undefined, { signal }: StepContext) {
    const { stores } = this.#options;
    if (url === undefined) throw new RestoreError('HF_RESTORE_FAILED', { reason: 'there is no instance' });
    const target = stores.at(url);
    await refuseLiveInstance(stores.live, target, signal);
    if ((await target.collection(stores.collection, signal)) === undefined) {
      throw new RestoreError('HF_RESTORE_FAILED', {
        reason: `the copy has no collection ${stores.collection}`,
      });
    }
    return url;
  }

  async #copies() {
    return (await this.#options.records?.volumeCopies()) ?? [];
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return this.#options.scratch.remove(id, signal);
  }

  leftovers(signal: AbortSignal): Promise<readonly string[]> {
    return scratchLeftovers(this.#options.scratch, this.#options.clock, signal);
  }
}
