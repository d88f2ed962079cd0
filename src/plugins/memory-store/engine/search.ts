import type { DatabaseSync } from 'node:sqlite';
import { MemoryStoreError } from '../errors.ts';
import { LARGEST_CACHE } from '../limits.ts';
import { type Collection, tableOf } from './database.ts';
import { bound, type Id, isId } from './ids.ts';
import type { Row } from './points.ts';
import { count, floats, matches, normalised, rowOf, shownPoints } from './points.ts';
import type { Requests } from './requests.ts';

interface Hit {
  readonly id: Id;
  readonly score: number;
}

interface Vectors {
  readonly ids: readonly Id[];
  /** One after another. */
  readonly values: Float32Array;
}

type Ranking = Omit<Requests['search'], 'vector'> & { readonly target: readonly number[] | Id };

/** Exact search: every vector is compared. The vectors of small collections are kept in memory until a write. */
export class Search {
  readonly #db: DatabaseSync;
  readonly #kept = new Map<number, Vectors>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Drops the vectors that are kept of a collection. */
  forget({ place }: Collection): void {
    this.#kept.delete(place);
  }

  /** @throws HF_MEMORY_STORE_REQUEST another number of dimensions, or an id that is not there */
  nearest(collection: Collection, ranking: Ranking): object[] {
    const { limit, offset, score_threshold, filter } = ranking;
    const target = this.#target(collection, ranking.target);
    const self = Array.isArray(ranking.target) ? undefined : ranking.target;
    const best = new Best(limit + (offset ?? 0), score_threshold ?? Number.NEGATIVE_INFINITY);
    const kept = filter ? undefined : this.#vectors(collection);
    if (kept) {
      const { ids, values } = kept;
      const scores = dots(target, values);
      for (const [index, id] of ids.entries()) {
        if (id !== self) best.offer(id, scores[index] as number);
      }
    } else {
      const all = this.#db.prepare(`SELECT id, vector, payload FROM ${tableOf(collection)}`);
      for (const found of all.iterate()) {
        const row = rowOf(found);
        if (row.id !== self && matches(filter, row)) best.offer(row.id, dot(target, floats(row.vector), 0));
      }
    }
    return this.#shown(collection, best.sorted().slice(offset ?? 0), ranking);
  }

  #target(collection: Collection, target: readonly number[] | Id): Float32Array {
    if (typeof target === 'object') return normalised(target, collection.size);
    const row = this.#db.prepare(`SELECT vector FROM ${tableOf(collection)} WHERE id = ?`).get(bound(target));
    if (!row)
      throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason: `No point with id ${target} found` });
    return floats(vectorOf(row));
  }

  #shown(collection: Collection, hits: readonly Hit[], ranking: Ranking): object[] {
    const get = this.#db.prepare(`SELECT id, vector, payload FROM ${tableOf(collection)} WHERE id = ?`);
    const shown = { with_payload: ranking.with_payload ?? false, with_vector: ranking.with_vector };
    const found = function* (): Generator<Row & Pick<Hit, 'score'>> {
      for (const { id, score } of hits) {
        const row = get.get(bound(id));
        if (row) yield { ...rowOf(row), score };
      }
    };
    return shownPoints(found(), shown, ({ score }) => ({ version: 0, score }));
  }

  #vectors(collection: Collection): Vectors | undefined {
    const kept = this.#kept.get(collection.place);
    if (kept) return kept;
    const rows = count(this.#db, collection);
    if (rows * collection.size * 4 > LARGEST_CACHE) return undefined;
    const values = new Float32Array(rows * collection.size);
    const ids: Id[] = [];
    for (const row of this.#db.prepare(`SELECT id, vector FROM ${tableOf(collection)}`).iterate()) {
      values.set(floats(vectorOf(row)), ids.length * collection.size);
      if (isId(row.id)) ids.push(row.id);
    }
    this.#kept.clear(); // one collection's worth of memory
    this.#kept.set(collection.place, { ids, values });
    return { ids, values };
  }
}

/** The vector of a record. */
function vectorOf({ vector }: Record<string, unknown>): Uint8Array {
  if (vector instanceof Uint8Array) return vector;
  throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'a stored vector is damaged' });
}

/**
 * The products with all vectors, one after another. Nothing but numbers is in this loop: inside of a `for … of` V8 gives
 * `dot` code that takes three times as long (bench `memory`, row "exact search").
 */
function dots(target: Float32Array, values: Float32Array): Float64Array {
  const scores = new Float64Array(values.length / target.length);
  for (let index = 0; index < scores.length; index += 1)
    scores[index] = dot(target, values, index * target.length);
  return scores;
}

/** Four independent sums: a single one would make every addition wait for the one before. */
function dot(target: Float32Array, values: Float32Array, from: number): number {
  const whole = target.length - (target.length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let index = 0, at = from; index < whole; index += 4, at += 4) {
    a += (target[index] as number) * (values[at] as number);
    b += (target[index + 1] as number) * (values[at + 1] as number);
    c += (target[index + 2] as number) * (values[at + 2] as number);
    d += (target[index + 3] as number) * (values[at + 3] as number);
  }
  for (let index = whole; index < target.length; index += 1) {
    a += (target[index] as number) * (values[from + index] as number);
  }
  return a + b + (c + d);
}

/** The best hits of many in one pass: a list that is sorted whenever it has doubled. */
class Best {
  readonly #most: number;
  #least: number;
  #hits: Hit[] = [];

  constructor(most: number, threshold: number) {
    this.#most = most;
    this.#least = threshold;
  }

  offer(id: Id, score: number): void {
    if (score < this.#least) return;
    this.#hits.push({ id, score });
    if (this.#hits.length < 2 * this.#most + 16) return;
    this.#hits = this.sorted();
    this.#least = this.#hits.at(-1)?.score ?? this.#least;
  }

  sorted(): Hit[] {
    return this.#hits.toSorted((a, b) => b.score - a.score).slice(0, this.#most);
  }
}
