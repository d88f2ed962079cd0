import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type {
  About,
  CollectionInfo,
  MemoryStore,
  MemoryStores,
  Point,
  PointId,
  SnapshotDescription,
  StoredPoint,
} from '../../core/contracts/memory-store.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { CoreError } from '../../core/kernel/errors/core-error.ts';
import { type Call, Exchange } from './rest-client.ts';

/** What of the store's answers is used. Unknown fields are left alone: stores gain some with every release. */
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

export const answers = {
  about: z.object({ title: z.string(), version: z.string(), instance: z.string().optional() }),
  collection: z.object({
    status: z.string(),
    points_count: z.number().nullish(),
    config: z.object({ params: z.object({ vectors: z.unknown().optional() }) }),
  }),
  count: z.object({ count: z.int().min(0) }),
  points: z.array(point),
  scroll: z.object({ points: z.array(point), next_page_offset: id.nullish() }),
  snapshot,
  snapshots: z.array(snapshot),
  updated: z.object({ status: z.enum(['completed', 'acknowledged']) }),
  done: z.literal(true),
} as const;

export type SnapshotAnswer = z.output<typeof snapshot>;
export type PointAnswer = z.output<typeof point>;

/** A snapshot of a large collection is written, and fetched, in minutes. */
const SNAPSHOT_MS = 600_000;
const READY_MS = 5_000;

const inPath = (...parts: readonly string[]): string => parts.map(encodeURIComponent).join('/');

interface RestStoreOptions {
  readonly exchange: Exchange;
  /** The key with which a snapshot at this URL can be fetched, where one is needed. */
  readonly keyFor?: (location: string, signal: AbortSignal) => Promise<string | undefined>;
}

/** A memory store by its REST surface, a real one or the embedded one: both are spoken to by this alone. */
export class RestStore implements MemoryStore {
  readonly #exchange: Exchange;
  readonly #keyFor: NonNullable<RestStoreOptions['keyFor']>;

  constructor({ exchange, keyFor = async () => undefined }: RestStoreOptions) {
    this.#exchange = exchange;
    this.#keyFor = keyFor;
  }

  get url(): string {
    return this.#exchange.url;
  }

  async ready(signal?: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#exchange.plain({
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
    const answer = await this.#exchange.plain(call);
    try {
      return answers.about.parse(answer.json());
    } catch {
      throw this.#exchange.garbled(call, 'it does not say what it is');
    }
  }

  async collection(collection: string, signal?: AbortSignal): Promise<CollectionInfo | undefined> {
    const call = { method: 'GET', path: inPath('collections', collection), optional: true, signal } as const;
    const result = await this.#exchange.result(call);
    if (result === undefined) return undefined;
    const { status, points_count, config } = this.#read(call, answers.collection, result);
    return { status, pointsCount: points_count ?? 0, vectors: config.params.vectors };
  }

  async createCollection(collection: string, size: number, signal?: AbortSignal): Promise<void> {
    const body = { vectors: { size, distance: 'Cosine' } };
    await this.#ask({ method: 'PUT', path: inPath('collections', collection), body, signal }, answers.done);
  }

  async count(collection: string, signal?: AbortSignal): Promise<number> {
    const path = inPath('collections', collection, 'points', 'count');
    const { count } = await this.#ask({ method: 'POST', path, body: { exact: true }, signal }, answers.count);
    return count;
  }

  async points(
    collection: string,
    ids: readonly PointId[],
    signal?: AbortSignal,
  ): Promise<readonly StoredPoint[]> {
    const path = inPath('collections', collection, 'points');
    const body = { ids, with_payload: true, with_vector: true };
    return (await this.#ask({ method: 'POST', path, body, signal }, answers.points)).map(asPoint);
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
    const { points, next_page_offset: next } = await this.#ask(
      { method: 'POST', path, body, signal },
      answers.scroll,
    );
    return { points: points.map(asPoint), ...(next !== null && next !== undefined && { next }) };
  }

  async upsert(collection: string, points: readonly Point[], signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'points')}?wait=true`;
    await this.#ask({ method: 'PUT', path, body: { points }, signal }, answers.updated);
  }

  async snapshots(collection: string, signal?: AbortSignal): Promise<readonly SnapshotDescription[]> {
    const path = inPath('collections', collection, 'snapshots');
    return (await this.#ask({ method: 'GET', path, signal }, answers.snapshots)).map(asSnapshot);
  }

  async createSnapshot(collection: string, signal?: AbortSignal): Promise<SnapshotDescription> {
    const path = `${inPath('collections', collection, 'snapshots')}?wait=true`;
    const call = { method: 'POST', path, timeoutMs: SNAPSHOT_MS, signal } as const;
    return asSnapshot(await this.#ask(call, answers.snapshot));
  }

  async deleteSnapshot(collection: string, name: string, signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'snapshots', name)}?wait=true`;
    await this.#ask({ method: 'DELETE', path, signal }, answers.done);
  }

  snapshotUrl(collection: string, name: string): string {
    return `${this.url}/${inPath('collections', collection, 'snapshots', name)}`;
  }

  async recover(collection: string, location: string, signal?: AbortSignal): Promise<void> {
    const path = `${inPath('collections', collection, 'snapshots', 'recover')}?wait=true`;
    const key = await this.#keyFor(location, signal ?? AbortSignal.timeout(READY_MS));
    const body = { location, priority: 'snapshot', ...(key !== undefined && { api_key: key }) };
    await this.#ask({ method: 'PUT', path, body, timeoutMs: SNAPSHOT_MS, signal }, answers.done);
  }

  async #ask<T>(call: Call, shape: z.ZodType<T>): Promise<T> {
    return this.#read(call, shape, await this.#exchange.result(call));
  }

  #read<T>(call: Call, shape: z.ZodType<T>, result: unknown): T {
    const outcome = shape.safeParse(result);
    if (outcome.success) return outcome.data;
    const [issue] = outcome.error.issues;
    const place = ['result', ...(issue?.path ?? [])].join('.');
    throw this.#exchange.garbled(call, `${place}: ${issue?.message}`);
  }
}

function asPoint({ id, vector, payload }: PointAnswer): StoredPoint {
  const content = { payload: payload ?? {}, vector: vector ?? [] };
  return { id, ...(vector !== undefined && { vector }), ...(payload && { payload }), content };
}

function asSnapshot({ name, creation_time, size, checksum }: SnapshotAnswer): SnapshotDescription {
  return { name, size, createdAt: creation_time ?? undefined, checksum: checksum ?? undefined };
}

interface StoresOptions {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  /** Of the live store; an embedded one has it once it listens. */
  readonly url: () => string;
  readonly apiKey: (signal: AbortSignal) => Promise<string | undefined>;
  /** A PEM file. */
  readonly caFile?: string | undefined;
  readonly clock: Clock;
}

/** The live store and those of drills, with one pool of connections each. */
export class RestStores implements MemoryStores {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  readonly #options: StoresOptions;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(options: StoresOptions) {
    this.kind = options.kind;
    this.collection = options.collection;
    this.#options = options;
  }

  get live(): MemoryStore {
    const { url, apiKey } = this.#options;
    return new RestStore({ exchange: this.#exchange(`live ${url()}`, url(), apiKey) });
  }

  at(url: string): MemoryStore {
    const { apiKey, url: live } = this.#options;
    return new RestStore({
      exchange: this.#exchange(`at ${url}`, url, async () => undefined),
      keyFor: async (location, signal) =>
        URL.canParse(location) && new URL(location).origin === new URL(live()).origin
          ? apiKey(signal)
          : undefined,
    });
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#exchanges.values(), (exchange) => exchange.close()));
  }

  #exchange(key: string, url: string, apiKey: StoresOptions['apiKey']): Exchange {
    const known = this.#exchanges.get(key);
    if (known) return known;
    const exchange = new Exchange({ url, apiKey, ca: this.#ca(), clock: this.#options.clock });
    this.#exchanges.set(key, exchange);
    return exchange;
  }

  #ca(): string | undefined {
    const { caFile } = this.#options;
    if (caFile === undefined) return undefined;
    try {
      return readFileSync(caFile, 'utf8');
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
      throw new CoreError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
    }
  }
}
