import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SnapshotDescription } from '../../core/contracts/memory-store.ts';
import { originOf } from '../../core/host/http/addresses.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { EngineClient } from './engine/client.ts';
import { MemoryStoreError } from './errors.ts';
import { type Fetched, fetchSnapshot } from './incoming.ts';
import { checksumFile, draftOf } from './jobs/files.ts';
import type { Jobs } from './jobs/jobs.ts';
import { MOST_JOBS, SNAPSHOT_NAME } from './limits.ts';

/** A snapshot as the REST surface lists it. */
interface Listed extends Omit<SnapshotDescription, 'createdAt'> {
  readonly creation_time: string;
}

export interface Recovery {
  readonly location: string;
  readonly checksum?: string | undefined;
  /** Key for the store that the location names. */
  readonly apiKey?: string | undefined;
}

interface SnapshotsOptions {
  /** Folder of the store: snapshots are in `snapshots/<collection>`, files that arrive in `incoming`. */
  readonly dir: string;
  readonly database: string;
  readonly engine: EngineClient;
  readonly jobs: Jobs;
  readonly clock: Clock;
  /** Origins from which snapshots may be fetched. */
  readonly recoverFrom: () => readonly string[];
  /** The fingerprint of the certificate that a URL must show. */
  readonly pinOf?: ((url: URL) => string | undefined) | undefined;
}

/** The time in the names that this store gives. */
const MADE = /-(\d{4}-\d\d-\d\d)-(\d\d-\d\d-\d\d)\.snapshot$/;

/** The snapshots of one store: files, made and read in threads of their own and streamed in both directions. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  #fetched = 0;
  #arriving = 0;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** Removes the unfinished files of an interrupted run. */
  async sweep(): Promise<void> {
    await rm(this.#incoming, { recursive: true, force: true });
    for (const folder of await entries(join(this.#options.dir, 'snapshots'))) {
      const path = join(this.#options.dir, 'snapshots', folder);
      for (const file of await entries(path)) {
        if (file.endsWith(draftOf(''))) await rm(join(path, file), { force: true });
      }
    }
  }

  /** By name, which is by time. @throws HF_MEMORY_STORE_COLLECTION_MISSING */
  async list(collection: string): Promise<readonly Listed[]> {
    await this.#options.engine.call('info', collection);
    const folder = this.#folder(collection);
    const names = (await entries(folder)).filter((name) => SNAPSHOT_NAME.test(name));
    const listed = await Promise.all(names.toSorted().map((name) => this.#describe(collection, name)));
    return listed.filter((one) => one !== undefined);
  }

  /** @throws HF_MEMORY_STORE_COLLECTION_MISSING, HF_MEMORY_STORE_BUSY, HF_MEMORY_STORE_FULL */
  async create(collection: string): Promise<Listed> {
    const { engine, jobs, database } = this.#options;
    await engine.call('info', collection);
    const peer = Number(await engine.call('peer'));
    const { file } = await jobs.run(async () => {
      const folder = this.#folder(collection);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const file = join(folder, this.#freeName(collection, peer, await entries(folder)));
      return { kind: 'snapshot', database, collection, file } as const;
    });
    const made = await this.#describe(collection, file.slice(this.#folder(collection).length + 1));
    if (!made)
      throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'the new snapshot is gone already' });
    return made;
  }

  /** @throws HF_MEMORY_STORE_SNAPSHOT_MISSING */
  async open(collection: string, name: string): Promise<{ stream: NodeJS.ReadableStream; size: number }> {
    const { size } = await this.#existing(collection, name);
    return {
      stream: createReadStream(join(this.#folder(collection), name), { end: Math.max(0, size - 1) }),
      size,
    };
  }

  /** @throws HF_MEMORY_STORE_SNAPSHOT_MISSING */
  async delete(collection: string, name: string): Promise<void> {
    await this.#existing(collection, name);
    const file = join(this.#folder(collection), name);
    await rm(file, { force: true });
    await rm(checksumFile(file), { force: true });
  }

  /** @throws HF_MEMORY_STORE_LOCATION, HF_MEMORY_STORE_FETCH, HF_MEMORY_STORE_SNAPSHOT_INVALID, HF_MEMORY_STORE_REQUEST, HF_MEMORY_STORE_FULL */
  async recover(collection: string, { location, checksum, apiKey }: Recovery): Promise<void> {
    const url = URL.canParse(location) ? new URL(location) : undefined;
    if (!url) throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason: 'location is no URL' });
    if (url.protocol === 'file:') return this.#recoverFile(collection, await this.#ownFile(url), checksum);
    if (url.username !== '' || url.password !== '' || !this.#options.recoverFrom().includes(originOf(url))) {
      throw new MemoryStoreError('HF_MEMORY_STORE_LOCATION', {
        place: url.origin === 'null' ? url.protocol : url.origin,
      });
    }
    const { clock, pinOf } = this.#options;
    const [hashed, pin] = [checksum !== undefined, pinOf?.(url)];
    await this.incoming(collection, checksum, (file) =>
      fetchSnapshot({ url, file, clock, hashed, apiKey, pin }),
    );
  }

  /** Recovers from a file that `receive` writes, and removes it. @throws HF_MEMORY_STORE_BUSY too many arrive at once */
  async incoming(
    collection: string,
    checksum: string | undefined,
    receive: (file: string) => Promise<Fetched>,
  ): Promise<void> {
    if (this.#arriving >= MOST_JOBS) {
      throw new MemoryStoreError('HF_MEMORY_STORE_BUSY', {
        what: `${MOST_JOBS} snapshots are arriving`,
        seconds: 5,
      });
    }
    this.#arriving += 1;
    try {
      await this.#take(collection, checksum, receive);
    } finally {
      this.#arriving -= 1;
    }
  }

  async #take(
    collection: string,
    checksum: string | undefined,
    receive: (file: string) => Promise<Fetched>,
  ): Promise<void> {
    await mkdir(this.#incoming, { recursive: true, mode: 0o700 });
    this.#fetched += 1;
    const file = join(this.#incoming, `${this.#fetched}.snapshot`);
    try {
      const { sha256 } = await receive(file);
      if (checksum !== undefined && sha256 !== checksum.toLowerCase()) {
        throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason: 'Snapshot checksum mismatch' });
      }
      await this.#recoverFile(collection, file, undefined);
    } finally {
      await rm(file, { force: true });
    }
  }

  async #recoverFile(collection: string, file: string, checksum: string | undefined): Promise<void> {
    const { engine, jobs, database } = this.#options;
    await engine.call('peer'); // the database exists
    await jobs.run(() => ({ kind: 'recover', database, collection, file, checksum }) as const);
  }

  /** Files are read only from the folder where this store puts snapshots, links resolved. */
  async #ownFile(url: URL): Promise<string> {
    const forbidden = new MemoryStoreError('HF_MEMORY_STORE_LOCATION', {
      place: 'files outside of its snapshots',
    });
    if (url.host !== '') throw forbidden;
    try {
      const own = await realpath(join(this.#options.dir, 'snapshots'));
      const file = await realpath(fileURLToPath(url));
      if (file.startsWith(`${own}/`) && SNAPSHOT_NAME.test(file.slice(file.lastIndexOf('/') + 1)))
        return file;
    } catch {
      // The answer must not tell whether a file exists elsewhere.
    }
    throw forbidden;
  }

  /** Two snapshots of one second differ by their number. */
  #freeName(collection: string, peer: number, taken: readonly string[]): string {
    const at = new Date(this.#options.clock.now()).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
    for (let id = peer; ; id += 1) {
      const name = `${collection}-${id}-${at}.snapshot`;
      if (!taken.includes(name)) return name;
    }
  }

  async #existing(collection: string, name: string): Promise<Listed> {
    const found = SNAPSHOT_NAME.test(name) ? await this.#describe(collection, name) : undefined;
    if (found) return found;
    throw new MemoryStoreError('HF_MEMORY_STORE_SNAPSHOT_MISSING', {
      collection,
      snapshot: name.slice(0, 200),
    });
  }

  async #describe(collection: string, name: string): Promise<Listed | undefined> {
    const file = join(this.#folder(collection), name);
    try {
      const { size, mtime } = await stat(file);
      const checksum = await readFile(checksumFile(file), 'latin1').catch(() => undefined);
      // The time in its name: a file that was touched or copied is not a new snapshot.
      const [, date, time] = MADE.exec(name) ?? [];
      const named = date === undefined ? undefined : `${date}T${time?.replaceAll('-', ':')}`;
      const creation_time = named ?? mtime.toISOString().slice(0, 19);
      return { name, creation_time, size, ...(checksum !== undefined && { checksum }) };
    } catch {
      return undefined; // deleted meanwhile
    }
  }

  #folder(collection: string): string {
    return join(this.#options.dir, 'snapshots', collection);
  }

  get #incoming(): string {
    return join(this.#options.dir, 'incoming');
  }
}

async function entries(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
