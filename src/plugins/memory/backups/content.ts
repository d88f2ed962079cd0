/** Records the content of a collection with a backup: a fingerprint for each point, in files of the data folder. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type {
  MemoryStore,
  PointFingerprint,
  PointId,
  RecordedContent,
  RecordedPoint,
} from '../../../core/contracts/memory-store.ts';
import { mergeJoin } from '../../../core/host/merge-join.ts';
import type { Vault } from '../../../core/host/secrets/vault.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import { comparePointIds, DigestSum } from '../../../machines/memory/points.ts';
import { MemoryError } from '../errors.ts';

const DRAFT = /^\d+-\d+\.part$/;
const LIST = /^([0-9a-f]{64})\.points$/;
/** A list that no record names is deleted after this: the record of a new one is still on its way into the log. */
const SPARED_MS = 3_600_000;
/** Characters that are written at once. */
const CHUNK = 64 * 1024;
/** Bytes that are read at once: some two hundred lines, about as many points as the store gives in a page. */
const READ = 16 * 1024;

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
    const before = await this.#draft((lines) => this.#writeLive(lines, signal));
    try {
      const result = await work();
      const wanted = new Set(seeds);
      const found: PointFingerprint[] = [];
      const sum = new DigestSum();
      const counts = { before: 0, after: 0, written: 0 };
      const draft = await this.#draft(async (lines) => {
        for await (const page of mergeJoin(comparePointIds, readList(before.file), this.#live(signal))) {
          for (const {
            id,
            found: [earlier, later],
          } of page) {
            const [one, other] = [earlier?.states[0], later?.fingerprint];
            counts.before += Number(one !== undefined);
            counts.after += Number(other !== undefined);
            if (one === other && one !== undefined) {
              sum.add(one);
              if (wanted.has(id)) found.push({ id, fingerprint: one });
              lines.add(JSON.stringify([id, one]));
            } else {
              counts.written += 1;
              lines.add(JSON.stringify([id, one ?? null, other ?? null]));
            }
          }
          await lines.flush();
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
  async *points(content: RecordedContent): AsyncGenerator<readonly RecordedPoint[]> {
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

  async #writeLive(lines: Lines, signal: AbortSignal): Promise<void> {
    for await (const page of this.#live(signal)) {
      for (const { id, fingerprint } of page) lines.add(JSON.stringify([id, fingerprint]));
      await lines.flush();
    }
  }

  async *#live(signal: AbortSignal): AsyncGenerator<readonly PointFingerprint[]> {
    const { store, collection, vault } = this.#options;
    for await (const page of store().digests(collection, signal)) {
      yield page.map(({ id, digest }) => ({ id, fingerprint: vault.fingerprint([id, digest]) }));
    }
  }

  /** Writes a file line by line, and deletes it after a failure. */
  async #draft(fill: (lines: Lines) => Promise<void>): Promise<{ file: string; sha256: string }> {
    const { dir } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    this.#drafts += 1;
    const file = join(dir, `${process.pid}-${this.#drafts}.part`);
    const handle = await open(file, 'w', 0o600);
    try {
      const lines = new Lines(handle);
      await fill(lines);
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

  add(text: string): void {
    this.#waiting += `${text}\n`;
  }

  async end(): Promise<string> {
    await this.flush(0);
    return this.#sha256.digest('hex');
  }

  /** Writes what waits. @param least characters; fewer wait for more */
  async flush(least = CHUNK): Promise<void> {
    if (this.#waiting.length < least) return;
    this.#sha256.update(this.#waiting);
    await this.#handle.writeFile(this.#waiting);
    this.#waiting = '';
  }
}

/** @param onText gets all that is read, in parts */
async function* readList(
  file: string,
  onText: (text: string) => void = () => {},
): AsyncGenerator<readonly RecordedPoint[]> {
  let rest = '';
  for await (const text of createReadStream(file, { encoding: 'utf8', highWaterMark: READ })) {
    onText(text);
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield lines.map(recordedPoint);
  }
  if (rest !== '') yield [recordedPoint(rest)];
}

function recordedPoint(text: string): RecordedPoint {
  const [id, first, ...others] = line.parse(JSON.parse(text));
  return { id, states: [first ?? undefined, ...others.map((one) => one ?? undefined)] };
}
