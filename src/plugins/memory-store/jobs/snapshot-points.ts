import type { DatabaseSync } from 'node:sqlite';
import { nestsDeeper } from '../../../core/kernel/json.ts';
import { isId, isStoredId } from '../engine/ids.ts';
import { floats, isStoredVector } from '../engine/points.ts';
import { DEEPEST, LARGEST_PAYLOAD } from '../limits.ts';

/** What SQLite can say of a row without reading its payload into this process. */
const MALFORMED = `
  CASE
    WHEN typeof(id) NOT IN ('integer', 'text') OR (typeof(id) = 'integer' AND id NOT BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER})
      OR (typeof(id) = 'text' AND octet_length(id) <> 36) THEN 'its id is no number or UUID'
    WHEN typeof(vector) <> 'blob' OR octet_length(vector) <> ? THEN 'its vector has another size'
    WHEN payload IS NULL THEN NULL
    WHEN typeof(payload) <> 'text' THEN 'its payload is no JSON object'
    WHEN octet_length(payload) > ${LARGEST_PAYLOAD} THEN 'its payload is larger than ${LARGEST_PAYLOAD} bytes'
    WHEN NOT json_valid(payload) OR json_type(payload) <> 'object' THEN 'its payload is no JSON object'
  END`;

/**
 * Checks the points of a snapshot as the points of a write are checked: ids, vectors of finite numbers with length 1 or 0,
 * payloads that are objects within bounds. Whatever else is in a file would be in answers later.
 *
 * @param size numbers in a vector
 * @returns what is wrong with the first point that is no point; undefined when all are
 */
export function malformedPoint(db: DatabaseSync, size: number): string | undefined {
  const row = db
    .prepare(
      `SELECT substr(quote(id), 1, 80) AS name, reason
       FROM (SELECT id, ${MALFORMED} AS reason FROM points) WHERE reason IS NOT NULL LIMIT 1`,
    )
    .get(size * 4);
  if (row) return named(row.name, String(row.reason));
  for (const { id, vector, payload } of db.prepare('SELECT id, vector, payload FROM points').iterate()) {
    if (!isId(id) || !isStoredId(id)) return named(id, 'its id is no number or UUID');
    if (!(vector instanceof Uint8Array) || !isStoredVector(floats(vector)))
      return named(id, 'its vector holds no finite numbers of length 1');
    if (typeof payload === 'string' && nestsDeeper(payload, DEEPEST))
      return named(id, `its payload is nested deeper than ${DEEPEST} levels`);
  }
  return undefined;
}

/** The id comes from the file: signs that a terminal obeys are not repeated. */
const named = (id: unknown, reason: string): string =>
  `point ${String(id).replace(/[^\x20-\x7e]/g, '?')}: ${reason}`;
