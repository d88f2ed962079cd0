import type { DatabaseSync } from 'node:sqlite';
import { MemoryStoreError } from '../errors.ts';
import { LARGEST_ANSWER, LARGEST_PAGE, LARGEST_PAYLOAD, MOST_POINTS } from '../limits.ts';
import { type Collection, inTransaction, tableOf } from './database.ts';
import { type Filter, passes } from './filters.ts';
import { bound, type Id, isId } from './ids.ts';
import type { Requests } from './requests.ts';

type Shown = Pick<Requests['scroll'], 'with_payload' | 'with_vector'>;
const SCROLL_LIMIT = 10;

export const floats = (blob: Uint8Array): Float32Array =>
  new Float32Array(blob.buffer, blob.byteOffset, blob.byteLength / 4);

/** The vector with length 1, as the real store keeps it for its cosine distance; a zero vector is unchanged. */
export function normalised(vector: readonly number[], size: number): Float32Array {
  if (vector.length !== size) {
    const reason = `Vector dimension error: expected dim: ${size}, got ${vector.length}`;
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
  }
  const stored = Float32Array.from(vector);
  let squares = 0;
  for (const value of stored) squares += value * value;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length)) {
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', {
      reason: 'a vector holds numbers beyond 32 bits',
    });
  }
  // A vector of length 1 is stored unchanged, so that what was read can be stored again without a difference.
  if (length === 0 || Math.abs(squares - 1) < 1e-6) return stored;
  return stored.map((value) => value / length);
}

/** @returns whether a vector is as `normalised` stores it: of length 1, or 0 throughout; NaN is neither */
export function isStoredVector(vector: Float32Array): boolean {
  let squares = 0;
  for (const value of vector) squares += value * value;
  return squares === 0 || Math.abs(squares - 1) < 1e-4;
}

/** Estimated bytes of a point in an answer. */
const bytesOf = ({ vector, payload }: Row, { with_payload, with_vector }: Shown): number =>
  (with_vector ? vector.length * 5 : 0) + (with_payload && payload !== null ? Buffer.byteLength(payload) : 0);

/** The points of an answer. @throws HF_MEMORY_STORE_REQUEST they are larger than an answer may be */
export function shownPoints<P extends Row>(
  found: Iterable<P>,
  shown: Shown,
  also?: (point: P) => object,
): object[] {
  const points: object[] = [];
  let bytes = 0;
  for (const point of found) {
    bytes += bytesOf(point, shown);
    if (bytes > LARGEST_ANSWER) refuseAnswer('ask for fewer points, or scroll');
    points.push({ ...shownPoint(point, shown), ...also?.(point) });
  }
  return points;
}

function refuseAnswer(advice: string): never {
  const reason = `the answer would be larger than ${LARGEST_ANSWER} bytes: ${advice}`;
  throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
}

/** A payload as it is stored. @throws HF_MEMORY_STORE_REQUEST it is larger than a point may hold */
function storedPayload(id: Id, payload: object | null | undefined): string | null {
  if (payload === null || payload === undefined) return null;
  const text = JSON.stringify(payload);
  if (Buffer.byteLength(text) <= LARGEST_PAYLOAD) return text;
  const reason = `point ${id}: its payload is larger than ${LARGEST_PAYLOAD} bytes`;
  throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
}

/** A point with the requested fields. */
function shownPoint({ id, vector, payload }: Row, { with_payload, with_vector }: Shown): object {
  const kept = payload === null ? null : (JSON.parse(payload) as Record<string, unknown>);
  const chosen =
    kept && Array.isArray(with_payload)
      ? Object.fromEntries(Object.entries(kept).filter(([key]) => with_payload.includes(key)))
      : kept;
  return {
    id,
    ...(with_payload !== false && with_payload !== undefined && { payload: chosen ?? {} }),
    ...(with_vector === true && { vector: Array.from(floats(vector)) }),
  };
}

/** Stores all points of a request, or none. */
export function upsert(db: DatabaseSync, collection: Collection, { points }: Requests['upsert']): void {
  const table = tableOf(collection);
  const put = db.prepare(
    `INSERT INTO ${table} (id, vector, payload) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET vector = excluded.vector, payload = excluded.payload`,
  );
  inTransaction(db, () => {
    for (const { id, vector, payload } of points) {
      const stored = normalised(vector, collection.size);
      put.run(bound(id), new Uint8Array(stored.buffer), storedPayload(id, payload));
    }
    // Row numbers only grow, so points need to be counted only beyond the limit.
    const last = Number(db.prepare(`SELECT max(rowid) AS last FROM ${table}`).get()?.last ?? 0);
    if (last > MOST_POINTS && count(db, collection) > MOST_POINTS) {
      const reason = `a collection holds at most ${MOST_POINTS} points here`;
      throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason });
    }
  });
}

export function remove(db: DatabaseSync, collection: Collection, selector: Requests['delete']): void {
  const drop = db.prepare(`DELETE FROM ${tableOf(collection)} WHERE id = ?`);
  inTransaction(db, () => {
    const doomed =
      selector.points ?? Array.from(rows(db, collection, undefined, selector.filter), ({ id }) => id);
    for (const id of doomed) drop.run(bound(id));
  });
}

export function count(db: DatabaseSync, collection: Collection, filter?: Filter): number {
  if (!filter) return Number(db.prepare(`SELECT count(*) AS n FROM ${tableOf(collection)}`).get()?.n);
  let found = 0;
  for (const _ of rows(db, collection, undefined, filter)) found += 1;
  return found;
}

/** The points that exist, in the order of the request. */
export function retrieve(db: DatabaseSync, collection: Collection, request: Requests['retrieve']): object[] {
  const get = db.prepare(`SELECT id, vector, payload FROM ${tableOf(collection)} WHERE id = ?`);
  const { with_payload = true, with_vector } = request;
  const found = function* (): Generator<Row> {
    for (const id of request.ids) {
      const row = get.get(bound(id));
      if (row) yield rowOf(row);
    }
  };
  return shownPoints(found(), { with_payload: with_payload ?? true, with_vector });
}

export function scroll(db: DatabaseSync, collection: Collection, request: Requests['scroll']): object {
  const { offset, filter, with_vector } = request;
  const shown = { with_payload: request.with_payload ?? true, with_vector };
  const limit = request.limit ?? SCROLL_LIMIT;
  const points: object[] = [];
  let bytes = 0;
  for (const row of rows(db, collection, offset ?? undefined, filter)) {
    bytes += bytesOf(row, shown);
    const isFull = points.length > 0 && bytes > LARGEST_PAGE;
    if (points.length === limit || isFull) return { points, next_page_offset: row.id };
    if (bytes > LARGEST_ANSWER) refuseAnswer(`point ${row.id} alone is, show less of it`);
    points.push(shownPoint(row, shown));
  }
  return { points, next_page_offset: null };
}

/** By id; ids that are numbers come first. */
export function* rows(db: DatabaseSync, collection: Collection, from?: Id, filter?: Filter): Generator<Row> {
  const where = from === undefined ? '' : 'WHERE id >= ?';
  const select = db.prepare(`SELECT id, vector, payload FROM ${tableOf(collection)} ${where} ORDER BY id`);
  for (const row of select.iterate(...(from === undefined ? [] : [bound(from)]))) {
    const point = rowOf(row);
    if (matches(filter, point)) yield point;
  }
}

export interface Row {
  readonly id: Id;
  readonly vector: Uint8Array;
  readonly payload: string | null;
}

/** Checks a record of a collection's table. @throws HF_MEMORY_STORE_FAILED the file is damaged */
export function rowOf(record: Record<string, unknown>): Row {
  if (isRow(record)) return record;
  throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'a stored point is damaged' });
}

function isRow(record: object): record is Row {
  if (!('id' in record && 'vector' in record && 'payload' in record)) return false;
  const { id, vector, payload } = record;
  return isId(id) && vector instanceof Uint8Array && (payload === null || typeof payload === 'string');
}

export const matches = (filter: Filter | undefined, { id, payload }: Row): boolean =>
  !filter || passes(filter, id, () => (payload === null ? {} : JSON.parse(payload)));
