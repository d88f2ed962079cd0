import { randomInt } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { MemoryStoreError } from '../errors.ts';
import { MOST_COLLECTIONS } from '../limits.ts';
import {
  type Collection,
  dropOrphans,
  findCollection,
  inTransaction,
  newPlace,
  openDatabase,
  putCollection,
  tableOf,
} from './database.ts';
import * as points from './points.ts';
import { Readings } from './readings.ts';
import { parseRequest } from './requests.ts';
import { Search } from './search.ts';

const LARGEST_PEER = 2 ** 47;
const numberIn = (body: Uint8Array): number => Number(Buffer.from(body).toString('latin1'));
const DONE = { operation_id: 0, status: 'completed' };

/** The operations of the engine; each returns the `result` of its answer. */
export type Operation = keyof Engine['operations'];

/** The collections and their points. Only its thread reads and writes them for requests. */
export class Engine {
  readonly #db: DatabaseSync;
  readonly #search: Search;
  readonly #readings: Readings;

  constructor(file: string) {
    this.#db = openDatabase(file);
    dropOrphans(this.#db);
    this.#search = new Search(this.#db);
    this.#readings = new Readings(file);
  }

  readonly operations = {
    peer: () => this.#peer(),
    list: () => ({ collections: this.#all().map((name) => ({ name })) }),
    exists: (name: string) => ({ exists: findCollection(this.#db, name) !== undefined }),
    create: (name: string, body: Uint8Array) => this.#create(name, body),
    drop: (name: string) => this.#drop(name),
    info: (name: string) => this.#info(name),
    upsert: (name: string, body: Uint8Array) => {
      const collection = this.#collection(name);
      points.upsert(this.#db, collection, parseRequest('upsert', body));
      this.#search.forget(collection);
      return DONE;
    },
    delete: (name: string, body: Uint8Array) => {
      const collection = this.#collection(name);
      points.remove(this.#db, collection, parseRequest('delete', body));
      this.#search.forget(collection);
      return DONE;
    },
    retrieve: (name: string, body: Uint8Array) =>
      points.retrieve(this.#db, this.#collection(name), parseRequest('retrieve', body)),
    scroll: (name: string, body: Uint8Array) =>
      points.scroll(this.#db, this.#collection(name), parseRequest('scroll', body)),
    count: (name: string, body: Uint8Array) => ({
      count: points.count(this.#db, this.#collection(name), parseRequest('count', body).filter),
    }),
    search: (name: string, body: Uint8Array) => {
      const { vector, ...ranking } = parseRequest('search', body);
      return this.#search.nearest(this.#collection(name), { ...ranking, target: vector });
    },
    query: (name: string, body: Uint8Array) => ({
      points: this.#search.nearest(this.#collection(name), parseRequest('query', body)),
    }),
    openReading: (name: string) => this.#readings.open(name),
    readOn: (_name: string, number: Uint8Array) => this.#readings.page(numberIn(number)),
    closeReading: (_name: string, number: Uint8Array) => this.#readings.close(numberIn(number)),
  } as const;

  close(): void {
    this.#readings.closeAll();
    this.#db.close();
  }

  #collection(name: string): Collection {
    const collection = findCollection(this.#db, name);
    if (!collection) throw new MemoryStoreError('HF_MEMORY_STORE_COLLECTION_MISSING', { collection: name });
    return collection;
  }

  #all(): string[] {
    return this.#db
      .prepare('SELECT name FROM collections ORDER BY name')
      .all()
      .map(({ name }) => String(name));
  }

  /** The number in the names of this store's snapshots. */
  #peer(): number {
    const stored = this.#db.prepare('SELECT peer FROM instance').get()?.peer;
    if (stored !== undefined) return Number(stored);
    const peer = randomInt(LARGEST_PEER);
    this.#db.prepare('INSERT INTO instance (peer) VALUES (?)').run(peer);
    return peer;
  }

  #create(name: string, body: Uint8Array): true {
    const { vectors } = parseRequest('create', body);
    inTransaction(this.#db, () => {
      const names = this.#all();
      if (names.includes(name))
        throw new MemoryStoreError('HF_MEMORY_STORE_COLLECTION_EXISTS', { collection: name });
      if (names.length >= MOST_COLLECTIONS) {
        throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', {
          reason: `there are ${MOST_COLLECTIONS} collections already`,
        });
      }
      putCollection(this.#db, { name, place: newPlace(this.#db), size: vectors.size });
    });
    return true;
  }

  #drop(name: string): boolean {
    return inTransaction(this.#db, () => {
      const collection = findCollection(this.#db, name);
      if (!collection) return false;
      this.#search.forget(collection);
      this.#db.prepare('DELETE FROM collections WHERE name = ?').run(name);
      this.#db.exec(`DROP TABLE ${tableOf(collection)}`);
      return true;
    });
  }

  #info(name: string): object {
    const collection = this.#collection(name);
    return {
      status: 'green',
      optimizer_status: 'ok',
      points_count: points.count(this.#db, collection),
      indexed_vectors_count: 0,
      segments_count: 1,
      config: {
        params: {
          vectors: { size: collection.size, distance: 'Cosine' },
          shard_number: 1,
          replication_factor: 1,
          write_consistency_factor: 1,
          on_disk_payload: true,
        },
      },
      payload_schema: {},
    };
  }
}
