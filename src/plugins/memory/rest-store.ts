import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type {
  About,
  CollectionInfo,
  DigestedPoint,
  MemoryStore,
  MemoryStores,
  Point,
  PointId,
  SnapshotDescription,
  StoredPoint,
} from '../../core/contracts/memory-store.ts';
import { pointDigest } from '../../core/contracts/point-digest.ts';
import { originOf } from '../../core/host/http/addresses.ts';
import { free } from '../../core/host/http/bounded-body.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { comparePointIds } from '../../machines/memory/points.ts';
import { type RestCall, RestClient } from './rest-client.ts';

// The fields of the store's answers that are used. Unknown fields are ignored: stores gain some with every release.

const id = z.union([z.int(), z.string()]);
const point = z.object({
  id,
  vector: z.unknown().optional(),
  payload: z.record(z.string(), z.unknown()).nullish(),
});
const snapshot = z.object({
  name: z.string().min(1).max(500),
  creation_time: z.string().nullish(),
  size: z.number().min(0),
  checksum: z.string().nullish(),
});

const answers = {
  about: z.object({
    title: z.string(),
    version: z.string(),
    instance: z.string().optional(),
    digests: z.boolean().optional(),
  }),
  collection: z.object({
    status: z.string(),
    points_count: z.number().nullish(),
    config: z.object({ params: z.object({ vectors: z.unknown().optional() }) }),
  }),
  count: z.object({ count: z.int().min(0) }),
  points: z.array(point),
  found: z.array(point.extend({ score: z.number() })),
  digests: z.array(z.object({ id, digest: z.string() })),
  scroll: z.object({ points: z.array(point), next_page_offset: id.nullish() }),
  snapshot,
  snapshots: z.array(snapshot),
  updated: z.object({ status: z.enum(['completed', 'acknowledged']) }),
  done: z.literal(true),
} as const;

type SnapshotAnswer = z.output<typeof snapshot>;
type PointAnswer = z.output<typeof point>;

/** A snapshot of a large collection is written, and fetched, in minutes. */
const SNAPSHOT_MS = 600_000;
const READY_MS = 5_000;
/** Points of a page with their vectors: small enough that reading one does not hold up the process. */
const PAGE = 64;

const inPath = (...segments: readonly string[]): string => segments.map(encodeURIComponent).join('/');

/** All points of a collection by id, page by page, and the call that gives them. */
interface Reading {
  readonly call: Pick<RestCall, 'method' | 'path'>;
  readonly pages: AsyncIterable<readonly DigestedPoint[]>;
}

interface RestStoreOptions {
  readonly client: RestClient;
  /** The key with which a snapshot at this URL can be fetched, where one is needed. */
  readonly keyFor?: (location: string, signal: AbortSignal) => Promise<string | undefined>;
}

/** A memory store by its REST surface; the embedded one is called in the same way as a real one. */
export class RestStore implements MemoryStore {
  readonly #client: RestClient;
  readonly #keyFor: NonNullable<RestStoreOptions['keyFor']>;

  constructor({ client, keyFor = async () => undefined }: RestStoreOptions) {
    this.#client = client;
    this.#keyFor = keyFor;
  }

  get url(): string {
    return this.#client.url;
  }

  async ready(signal?: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#client.answer({
        method: 'GET',
        path: 'readyz',
        timeoutMs: READY_MS,
        signal,
      });
      return status === 200;
    } catch {
      signal?.throwIfAborted();
      return false;
    }
  }

  async about(signal?: AbortSignal): Promise<About> {
    const call = { method: 'GET', path: '', signal } as const;
    const answer = await this.#client.answer(call);
    try {
      return answers.about.parse(answer.json());
    } catch {
      throw this.#client.unexpected(call, 'it gives no title and version');
    }
  }

  async collection(collection: string, signal?: AbortSignal): Promise<CollectionInfo | undefined> {
    const call = { method: 'GET', path: inPath('collections', collection), optional: true, signal } as const;
    const result = await this.#client.result(call);
    if (result === undefined) return undefined;
    const { status, points_count, config } = this.#read(call, answers.collection, result);
    return { status, pointsCount: points_count ?? 0, vectors: config.params.vectors };
  }

  async createCollection(collection: string, size: number, signal?: AbortSignal): Promise<void> {
    const body = { vectors: { size, distance: 'Cosine' } };
    await this.#call({ method: 'PUT', path: inPath('collections', collection), body, signal }, answers.done);
  }

  async count(collection: string, signal?: AbortSignal): Promise<number> {
    const path = inPath('collections', collection, 'points', 'count');
    const { count } = await this.#call(
      { method: 'POST', path, body: { exact: true }, signal },
      answers.count,
    );
    return count;
  }

  async points(
    collection: string,
    ids: readonly PointId[],
    signal?: AbortSignal,
  ): Promise<readonly StoredPoint[]> {
    const path = inPath('collections', collection, 'points');
    const body = { ids, with_payload: true, with_vector: true };
    return (await this.#call({ method: 'POST', path, body, signal }, answers.points)).map(asPoint);
  }

  async scroll(
    collection: string,
    page: { readonly from?: PointId | undefined; readonly limit: number; readonly vectors: boolean },
    signal?: AbortSignal,
  ): Promise<{ readonly points: readonly StoredPoint[]; readonly next?: PointId | undefined }> {
    const path = inPath('collections', collection, 'points', 'scroll');
    const body = {
      limit: page.limit,
      with_payload: true,
      with_vector: page.vectors,
      ...(page.from !== undefined && { offset: page.from }),
    };
    const { points, next_page_offset: next } = await this.#call(
      { method: 'POST', path, body, signal },
      answers.scroll,
    );
    return { points: points.map(asPoint), ...(next !== null && next !== undefined && { next }) };
  }

  async *digests(collection: string, signal?: AbortSignal): AsyncGenerator<readonly DigestedPoint[]> {
    const { call, pages } = (await this.#givesDigests(signal))
      ? this.#given(collection, signal)
      : this.#scrolled(collection, signal);
    let last: PointId | undefined;
    for await (const points of pages) {
      for (const one of points) {
        if (last !== undefined && comparePointIds(last, one.id) >= 0) {
          throw this.#client.unexpected(call, `it lists its points out of order, at ${one.id}`);
        }
        last = one.id;
      }
      yield points;
    }
  }

  async #givesDigests(signal?: AbortSignal): Promise<boolean> {
    try {
      return (await this.about(signal)).digests === true;
    } catch {
      signal?.throwIfAborted();
      return false;
    }
  }

  /** The digests that the store takes, as of one moment. */
  #given(collection: string, signal: AbortSignal | undefined): Reading {
    const path = inPath('collections', collection, 'digests');
    const call = { method: 'GET', path, timeoutMs: SNAPSHOT_MS, signal } as const;
    const [client, read] = [this.#client, (page: unknown) => this.#read(call, answers.digests, page)];
    const pages = async function* () {
      let isWhole = false;
      for await (const page of client.lines(call)) {
        if (isWhole) throw client.unexpected(call, 'something follows its end');
        const points = read(page);
        isWhole = points.length === 0;
        yield points;
      }
      if (!isWhole) throw client.unexpected(call, 'its end is missing');
    };
    return { call, pages: pages() };
  }

  /** Digests of what a store's pages hold; a point may be written between two of them. */
  #scrolled(collection: string, signal: AbortSignal | undefined): Reading {
    const call = { method: 'POST', path: inPath('collections', collection, 'points', 'scroll') } as const;
    const scroll = (from: PointId | undefined) =>
      this.scroll(collection, { from, limit: PAGE, vectors: true }, signal);
    const pages = async function* () {
      let from: PointId | undefined;
      do {
        const { points, next } = await scroll(from);
        yield points.map(({ id, digest }) => ({ id, digest }));
        from = next;
      } while (from !== undefined);
    };
    return { call, pages: pages() };
  }

  async upsert(collection: string, points: readonly Point[], signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'points')}?wait=true`;
    await this.#call({ method: 'PUT', path, body: { points }, signal }, answers.updated);
  }

  async remove(collection: string, ids: readonly PointId[], signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'points', 'delete')}?wait=true`;
    await this.#call({ method: 'POST', path, body: { points: ids }, signal }, answers.updated);
  }

  async search(
    collection: string,
    vector: readonly number[],
    limit: number,
    signal?: AbortSignal,
  ): Promise<readonly (Pick<Point, 'id' | 'payload'> & { readonly score: number })[]> {
    const path = inPath('collections', collection, 'points', 'search');
    const body = { vector, limit, with_payload: true };
    const found = await this.#call({ method: 'POST', path, body, signal }, answers.found);
    return found.map(({ id, payload, score }) => ({ id, score, ...(payload && { payload }) }));
  }

  async snapshots(collection: string, signal?: AbortSignal): Promise<readonly SnapshotDescription[]> {
    const path = inPath('collections', collection, 'snapshots');
    return (await this.#call({ method: 'GET', path, signal }, answers.snapshots)).map(asSnapshot);
  }

  async createSnapshot(collection: string, signal?: AbortSignal): Promise<SnapshotDescription> {
    const path = `${inPath('collections', collection, 'snapshots')}?wait=true`;
    const call = { method: 'POST', path, timeoutMs: SNAPSHOT_MS, signal } as const;
    return asSnapshot(await this.#call(call, answers.snapshot));
  }

  async deleteSnapshot(collection: string, name: string, signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'snapshots', name)}?wait=true`;
    await this.#call({ method: 'DELETE', path, signal }, answers.done);
  }

  async snapshotDigest(
    collection: string,
    name: string,
    signal?: AbortSignal,
  ): Promise<{ readonly sha256: string; readonly size: number }> {
    const path = inPath('collections', collection, 'snapshots', name);
    const sha256 = createHash('sha256');
    let size = 0;
    await this.#client.read({ method: 'GET', path, timeoutMs: SNAPSHOT_MS, signal }, (chunk) => {
      sha256.update(chunk);
      size += chunk.length;
      free(chunk); // a snapshot is larger than what V8 collects in time
    });
    return { sha256: sha256.digest('hex'), size };
  }

  snapshotUrl(collection: string, name: string): string {
    return `${this.url}/${inPath('collections', collection, 'snapshots', name)}`;
  }

  async recover(collection: string, location: string, signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'snapshots', 'recover')}?wait=true`;
    const key = await this.#keyFor(location, signal ?? AbortSignal.timeout(READY_MS));
    const body = { location, priority: 'snapshot', ...(key !== undefined && { api_key: key }) };
    await this.#call({ method: 'PUT', path, body, timeoutMs: SNAPSHOT_MS, signal }, answers.done);
  }

  async #call<T>(call: RestCall, shape: z.ZodType<T>): Promise<T> {
    return this.#read(call, shape, await this.#client.result(call));
  }

  #read<T>(call: RestCall, shape: z.ZodType<T>, result: unknown): T {
    const outcome = shape.safeParse(result);
    if (outcome.success) return outcome.data;
    const [issue] = outcome.error.issues;
    const field = ['result', ...(issue?.path ?? [])].join('.');
    throw this.#client.unexpected(call, `${field}: ${issue?.message}`);
  }
}

function asPoint({ id, vector, payload }: PointAnswer): StoredPoint {
  return {
    id,
    ...(vector !== undefined && { vector }),
    ...(payload && { payload }),
    get digest() {
      return pointDigest({ payload, vector });
    },
  };
}

function asSnapshot({ name, creation_time, size, checksum }: SnapshotAnswer): SnapshotDescription {
  return { name, size, createdAt: creation_time ?? undefined, checksum: checksum ?? undefined };
}

interface StoresOptions {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  /** URL of the live store. The embedded one has it only after it has begun to listen. */
  readonly url: () => string;
  readonly apiKey: (signal: AbortSignal) => Promise<string | undefined>;
  /** A PEM file. */
  readonly caFile?: string | undefined;
  /** Fingerprint of the live store's certificate, where that is pinned. */
  readonly pin?: () => string | undefined;
  /** Whether the key may go to another machine in plaintext. */
  readonly insecure?: boolean | undefined;
  readonly clock: Clock;
}

/** The live store and those of drills, with one pool of connections each. */
export class RestStores implements MemoryStores {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  readonly #options: StoresOptions;
  readonly #clients = new Map<string, RestClient>();

  constructor(options: StoresOptions) {
    this.kind = options.kind;
    this.collection = options.collection;
    this.#options = options;
  }

  get live(): MemoryStore {
    const { url, pin, apiKey } = this.#options;
    const pinned = pin?.();
    return new RestStore({ client: this.#client(`live ${url()} ${pinned}`, url(), apiKey, pinned) });
  }

  at(url: string): MemoryStore {
    const { apiKey, url: live } = this.#options;
    return new RestStore({
      client: this.#client(`at ${url}`, url, async () => undefined),
      keyFor: async (location, signal) =>
        URL.canParse(location) && originOf(new URL(location)) === originOf(new URL(live()))
          ? apiKey(signal)
          : undefined,
    });
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#clients.values(), (client) => client.close()));
  }

  #client(key: string, url: string, apiKey: StoresOptions['apiKey'], pin?: string): RestClient {
    const open = this.#clients.get(key);
    if (open) return open;
    const { clock, insecure } = this.#options;
    const client = new RestClient({ url, apiKey, ca: this.#ca(), pin, insecure, clock });
    this.#clients.set(key, client);
    return client;
  }

  #ca(): string | undefined {
    const { caFile } = this.#options;
    if (caFile === undefined) return undefined;
    try {
      return readFileSync(caFile, 'utf8');
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
      throw new KernelError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
    }
  }
}
