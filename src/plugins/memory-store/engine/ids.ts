/** Ids of points: numbers and UUIDs, as they are written by clients and kept in the database. */
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { MOST_PER_REQUEST } from '../limits.ts';

const UUID = /^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/;

/** @returns the one spelling of a UUID */
const plainUuid = (text: string): string => text.toLowerCase().replace(UUID, '$1-$2-$3-$4-$5');

export const pointId = z.union([
  // A value that is no point id is malformed (400), not out of bounds (422).
  z.int().refine((id) => id >= 0, 'a point id is a number or a UUID'),
  z
    .string()
    .refine((text) => UUID.test(text.toLowerCase()), 'a point id is a number or a UUID')
    .transform(plainUuid),
]);
export type Id = z.output<typeof pointId>;

export const ids = z.array(pointId).max(MOST_PER_REQUEST);

/** @returns whether an id is spelt as a write stores it */
export function isStoredId(id: Id): boolean {
  const { success, data } = pointId.safeParse(id);
  return success && data === id;
}

export const isId = (value: unknown): value is Id => typeof value === 'number' || typeof value === 'string';

/** The binding stores a number as a fraction; a bigint is stored as an integer, which sorts before texts. */
export const bound = (id: Id): SQLInputValue => (typeof id === 'number' ? BigInt(id) : id);
