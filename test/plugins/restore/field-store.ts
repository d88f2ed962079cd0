import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Scope } from '../../support/scope.ts';

interface Stored {
  readonly id: number | string;
  readonly vector: readonly number[];
  readonly payload: Record<string, unknown>;
}

interface Collection {
  size: number;
  readonly points: Map<number | string, Stored>;
}

/** What happens to a call instead of what should; `hang` never answers. */
export type Mishap = { readonly status: number; readonly text: string } | 'hang';

/**
 * A memory store as real ones answer, envelope and all, whose calls can be made to fail. Its snapshots are JSON, and it
 * fetches them by URL as a real one does.
 */
export class FieldStore {
  readonly collections = new Map<string, Collection>();
  readonly snapshots = new Map<string, string>();
  /** `METHOD path` of everything that came. */
  readonly calls: string[] = [];
  /** By which names it was called. */
  readonly hosts = new Set<string>();
  /** What it says of the size of snapshots, in the place of the truth. */
  toldSize: number | undefined;
  /** What it says of the time of snapshots, by name, as after a file was touched. */
  readonly toldTimes = new Map<string, string>();
  /** Which instance it says that it is; real ones do not. */
  instance: string | undefined;
  /** Looked at before each call. */
  mishap: (call: string) => Mishap | undefined = () => undefined;
  /** Runs before a call is answered. */
  before: (call: string) => void = () => {};
  #server!: Server;

  static async start(t: Scope): Promise<FieldStore> {
    const store = new FieldStore();
    store.#server = createServer((request, response) => {
      store.#serve(request, response).catch(() => response.destroy());
    });
    store.#server.listen(0, '127.0.0.1');
    await once(store.#server, 'listening');
    t.teardown(() => store.stop());
    return store;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Fills the collection `memory`. */
  fill(count: number, size = 3): Collection {
    const points = new Map(
      Array.from({ length: count }, (_, index): [number, Stored] => [
        index + 1,
        { id: index + 1, vector: Array(size).fill(index / count), payload: { text: `memory ${index + 1}` } },
      ]),
    );
    const collection = { size, points };
    this.collections.set('memory', collection);
    return collection;
  }

  /** Makes a snapshot, as somebody else would. */
  snapshot(name = `memory-1-2026-11-21-02-30-0${this.snapshots.size}.snapshot`): string {
    const { size, points } = this.collections.get('memory')!;
    this.snapshots.set(name, JSON.stringify({ size, points: [...points.values()] }));
    return name;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const call = `${request.method} ${pathname}`;
    this.calls.push(call);
    this.hosts.add(request.headers.host ?? '');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const mishap = this.mishap(call);
    if (mishap === 'hang') return;
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const refuse = (status: number, error: string) => answer(status, { status: { error }, time: 0 });
    if (mishap) return void refuse(mishap.status, mishap.text);
    this.before(call);
    if (pathname === '/')
      return void answer(200, {
        title: 'qdrant - vector search engine',
        version: '1.19.0',
        instance: this.instance,
      });
    if (pathname === '/readyz') return void response.end('all shards are ready');
    const result = await this.#result(call, text === '' ? {} : JSON.parse(text));
    if (result === undefined) refuse(404, 'Not found');
    else if (result instanceof Error) refuse(400, result.message);
    else if (isFile(result)) response.end(result.file);
    else answer(200, { result, status: 'ok', time: 0 });
  }

  async #result(call: string, body: any): Promise<unknown> {
    const [method, path = ''] = call.split(' ');
    const [, , name = '', part, last] = path.split('/').map(decodeURIComponent);
    const collection = this.collections.get(name);
    if (name === '') return { collections: [...this.collections.keys()].map((one) => ({ name: one })) };
    if (part === 'snapshots' && last === 'recover') return this.#recover(name, body);
    if (part === undefined) {
      if (method === 'PUT') this.collections.set(name, { size: body.vectors.size, points: new Map() });
      if (method === 'DELETE') this.collections.delete(name);
      if (method !== 'GET') return true;
      if (!collection) return undefined;
      const vectors = { size: collection.size, distance: 'Cosine' };
      return { status: 'green', points_count: collection.points.size + 1, config: { params: { vectors } } };
    }
    if (!collection) return undefined;
    const points = [...collection.points.values()];
    if (part === 'snapshots') {
      if (last !== undefined)
        return this.snapshots.has(last) ? { file: this.snapshots.get(last)! } : undefined;
      const describe = (one: string) => ({
        name: one,
        creation_time: this.toldTimes.get(one) ?? '2026-11-21T02:30:00',
        size: this.toldSize ?? this.snapshots.get(one)!.length,
        checksum: null,
      });
      return method === 'POST' ? describe(this.snapshot()) : [...this.snapshots.keys()].map(describe);
    }
    if (last === 'count') return { count: points.length };
    if (last === 'scroll') {
      const rest = points
        .filter(({ id }) => body.offset === undefined || id >= body.offset)
        .toSorted((a, b) => Number(a.id) - Number(b.id));
      const page = rest
        .slice(0, body.limit)
        .map(({ id, payload, vector }) => ({ id, payload, ...(body.with_vector && { vector }) }));
      return { points: page, next_page_offset: rest[body.limit]?.id ?? null };
    }
    return points.filter(({ id }) => body.ids.includes(id));
  }

  async #recover(name: string, { location }: { location: string }): Promise<unknown> {
    const failed = new Error(`Wrong input: Failed to download tar from URL ${location}`);
    try {
      const answer = await fetch(location, { signal: AbortSignal.timeout(5_000) });
      if (!answer.ok) return failed;
      const { size, points } = (await answer.json()) as { size: number; points: Stored[] };
      this.collections.set(name, { size, points: new Map(points.map((point) => [point.id, point])) });
      return true;
    } catch {
      return failed;
    }
  }
}

function isFile(result: unknown): result is { readonly file: string } {
  return typeof result === 'object' && result !== null && 'file' in result;
}
