/** Records the content of a collection with a backup: a fingerprint for each point, in files of the data folder. */
import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { alongside, DigestSum } from '../../../core/contracts/memory-points.ts';
import type {
  MemoryStore,
  PointFingerprint,
  PointId,
  RecordedContent,
  RecordedPoint,
} from '../../../core/contracts/memory-store.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import { MemoryError } from '../errors.ts';

const DRAFT = /^\d+-\d+\.part$/;
const LIST = /^([0-9a-f]{64})\.points$/;
/** A list that no record names is deleted after this: the record of a new one is still on its way into the log. */
const SPARED_MS = 3_600_000;
/** Characters that are written at once. */
const CHUNK = 64 * 1024;

const state = z.string().nullable();
/** A line of a list: a point's id, and its fingerprint; a second one where it was written meanwhile, null for its absence. */
const line = z.tuple([z.union([z.int(), z.string()]), state]).rest(state);

/** What a collection held while some work was done. */
export interface Recorded<T> {
  readonly result: T;
  readonly content: RecordedContent;
  readonly seeds: readonly PointFingerprint[];
}

interface ListsOptions {
  readonly dir: string;
  readonly vault: Vault;
  readonly store: () => MemoryStore;
  readonly collection: string;
}

/** Reads what the live collection holds into lists, and the lists again. */
export class ContentLists {
  readonly #options: ListsOptions;
  #drafts = 0;

  constructor(options: ListsOptions) {
    this.#options = options;
  }

  /**
   * Reads every point before and after `work`. A point that is the same in both readings did not change meanwhile; for
   * any other point both states are kept.
   *
   * @param seeds ids whose fingerprints are wanted
   */
  async recordDuring<T>(
    work: () => Promise<T>,
    seeds: readonly PointId[],
    signal: AbortSignal,
  ): Promise<Recorded<T>> {
    const { store, collection } = this.#options;
    const { vectors = {} } = (await store().collection(collection, signal)) ?? {};
    const before = await this.#draft((write) => this.#writeLive(write, signal));
    try {
      const result = await work();
      const wanted = new Set(seeds);
      const found: PointFingerprint[] = [];
      const sum = new DigestSum();
      const counts = { before: 0, after: 0, written: 0 };
      const draft = await this.#draft(async (write) => {
        for await (const {
          id,
          found: [earlier, later],
        } of alongside(readList(before.file), this.#live(signal))) {
          const [one, other] = [earlier?.states[0], later?.fingerprint];
          counts.before += Number(one !== undefined);
          counts.after += Number(other !== undefined);
          if (one === other && one !== undefined) {
            sum.add(one);
            if (wanted.has(id)) found.push({ id, fingerprint: one });
            await write(JSON.stringify([id, one]));
          } else {
            counts.written += 1;
            await write(JSON.stringify([id, one ?? null, other ?? null]));
          }
        }
      });
      const content = {
        count: counts.before,
        ...(counts.after !== counts.before && { countAfter: counts.after }),
        ...(counts.written === 0 && { digest: sum.text }),
        written: counts.written,
        vectors: canonicalJson(vectors),
        list: draft.sha256,
      };
      await rename(draft.file, this.#fileOf(content));
      return { result, content, seeds: found };
    } finally {
      await rm(before.file, { force: true });
    }
  }

  /** @throws HF_MEMORY_RECORD it is gone or damaged, which may be known only after the last point */
  async *points(content: RecordedContent): AsyncGenerator<RecordedPoint> {
    const sha256 = createHash('sha256');
    try {
      yield* readList(this.#fileOf(content), (text) => sha256.update(text));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const reason = code === 'ENOENT' ? 'it is gone' : code === undefined ? 'it is damaged' : `${code}`;
      throw new MemoryError('HF_MEMORY_RECORD', { list: content.list, reason }, { cause: error });
    }
    if (sha256.digest('hex') !== content.list) {
      throw new MemoryError('HF_MEMORY_RECORD', {
        list: content.list,
        reason: 'it is not the one that was recorded',
      });
    }
  }

  /** Deletes the drafts of interrupted runs and the lists that no record names. @param now epoch milliseconds */
  async sweep(named: ReadonlySet<string>, now: number): Promise<void> {
    for (const name of await readdir(this.#options.dir).catch(() => [])) {
      const list = LIST.exec(name)?.[1];
      if (list === undefined ? !DRAFT.test(name) : named.has(list)) continue;
      const file = join(this.#options.dir, name);
      const { mtimeMs = now } = (await stat(file).catch(() => undefined)) ?? {};
      if (mtimeMs < now - SPARED_MS) await rm(file, { force: true });
    }
  }

  async #writeLive(write: (text: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    for await (const { id, fingerprint } of this.#live(signal))
      await write(JSON.stringify([id, fingerprint]));
  }

  async *#live(signal: AbortSignal): AsyncGenerator<PointFingerprint> {
    const { store, collection, vault } = this.#options;
    for await (const { id, content } of store().all(collection, signal)) {
      yield { id, fingerprint: vault.fingerprint(content) };
    }
  }

  /** Writes a file line by line, and deletes it after a failure. */
  async #draft(
    fill: (write: (text: string) => Promise<void>) => Promise<void>,
  ): Promise<{ file: string; sha256: string }> {
    const { dir } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    this.#drafts += 1;
    const file = join(dir, `${process.pid}-${this.#drafts}.part`);
    const handle = await open(file, 'w', 0o600);
    try {
      const lines = new Lines(handle);
      await fill((text) => lines.write(text));
      const sha256 = await lines.end();
      await handle.sync();
      return { file, sha256 };
    } catch (error) {
      await rm(file, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  }

  #fileOf({ list }: RecordedContent): string {
    return join(this.#options.dir, `${list}.points`);
  }
}

/** Collects the lines of a file and the SHA-256 of all of them. */
class Lines {
  readonly #handle: FileHandle;
  readonly #sha256 = createHash('sha256');
  #waiting = '';

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async write(text: string): Promise<void> {
    this.#waiting += `${text}\n`;
    if (this.#waiting.length >= CHUNK) await this.#flush();
  }

  async end(): Promise<string> {
    await this.#flush();
    return this.#sha256.digest('hex');
  }

  async #flush(): Promise<void> {
    this.#sha256.update(this.#waiting);
    await this.#handle.writeFile(this.#waiting);
    this.#waiting = '';
  }
}

async function* readList(
  file: string,
  onLine: (text: string) => void = () => {},
): AsyncGenerator<RecordedPoint> {
  const handle = await open(file);
  try {
    for await (const text of handle.readLines({ encoding: 'utf8', autoClose: false })) {
      onLine(`${text}\n`);
      const [id, first, ...others] = line.parse(JSON.parse(text));
      yield { id, states: [first ?? undefined, ...others.map((one) => one ?? undefined)] };
    }
  } finally {
    await handle.close();
  }
}
