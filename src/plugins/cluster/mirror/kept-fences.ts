import { join } from 'node:path';
import { z } from 'zod';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { numberOf } from '../leases/ledger.ts';
import { DurableList } from './durable-list.ts';
import type { MetFence } from './standing.ts';

const FILE = 'cluster-fences.json';
/** Older ones are forgotten: those who took over then have long begun. */
const MOST = 100;

const keptFence = z.object({
  singleton: z.string(),
  token: z.string(),
  /** The host that took the singleton over. */
  by: z.string(),
  /** The last record of this host that counts, and its chain hash. */
  atSeq: z.int().min(0),
  hash: z.string().optional(),
  /** Types of the singleton's actors. */
  types: z.array(z.string()).readonly(),
  /** The newest message that holds it; absent while none does. */
  stands: z
    .object({ incarnation: z.int().min(1), streamSeq: z.int().min(1) })
    .readonly()
    .optional(),
});

/** Where a fence stands. */
export type FencePlace = NonNullable<KeptFence['stands']>;

/** A fence that this host has read on its own stream, or that whoever placed it told of. */
export type KeptFence = Readonly<z.output<typeof keptFence>>;

/** Where a stream can be read from. */
interface Readable {
  readonly incarnation: number;
  /** The first message of its newest `begin`. */
  readonly begin: number;
}

/**
 * The fences that this host knows of: `<dataDir>/cluster-fences.json`. A stream can be lost, or be trimmed, and what stood
 * behind a fence in it must not count in the next: so the fence goes there, too.
 */
export class KeptFences {
  readonly #fences: DurableList<KeptFence>;
  readonly #log: Pick<SqliteReader, 'hashBefore'>;

  /** @param onError hears of a file that cannot be read, which counts as none */
  constructor(dataDir: string, log: Pick<SqliteReader, 'hashBefore'>, onError: (error: unknown) => void) {
    this.#fences = new DurableList(join(dataDir, FILE), keptFence, onError);
    this.#log = log;
  }

  /** The newest of each singleton. */
  get newest(): readonly KeptFence[] {
    return [...new Map(this.#fences.current.map((fence) => [fence.singleton, fence])).values()];
  }

  /** Keeps one. Resolves when it is on the disk. @param stands where it was read; undefined when it was not */
  async keep(
    { singleton, token, by, atSeq }: MetFence,
    types: readonly string[],
    stands?: FencePlace,
  ): Promise<void> {
    const known = this.#fences.current.find(
      (fence) => fence.singleton === singleton && fence.token === token,
    );
    if (known && stands) await this.placed(known, stands);
    if (!known) {
      const hash = this.#log.hashBefore(atSeq + 1);
      const kept = { singleton, token, by, atSeq, ...(hash !== undefined && { hash }), types, stands };
      const all = [...this.#fences.current, kept];
      this.#fences.set(all.sort((one, other) => numberOf(one.token) - numberOf(other.token)).slice(-MOST));
    }
    // Also one that is known: it may have been written in vain.
    await this.#fences.saved();
  }

  /** The next one that has to be placed behind a record, or a later one. */
  next(after: number, { incarnation, begin }: Readable): KeptFence | undefined {
    return this.#fences.current
      .filter(({ stands }) => stands?.incarnation !== incarnation || stands.streamSeq < begin)
      .filter(({ atSeq, hash }) => hash === undefined || (this.#log.hashBefore(atSeq + 1) ?? hash) === hash)
      .sort((one, other) => Math.max(one.atSeq, after) - Math.max(other.atSeq, after))[0];
  }

  /** Notes where one stands now. */
  async placed({ singleton, token }: KeptFence, stands: FencePlace): Promise<void> {
    this.#fences.set(
      this.#fences.current.map((fence) =>
        fence.singleton === singleton && fence.token === token ? { ...fence, stands } : fence,
      ),
    );
    await this.#fences.saved();
  }
}
