/** What a point of a memory store holds, in one number: the same whoever takes it, the store of its rows or its reader. */
import { hash } from 'node:crypto';
import { canonicalJson } from '../kernel/canonical-json.ts';
import { isObject } from '../kernel/json.ts';

/** What a point holds beside its id. Absent is the same as `{}` and `[]`. */
export interface PointContent {
  readonly payload?: unknown;
  /** A list of numbers; named, sparse and multiple vectors too. */
  readonly vector?: unknown;
}

/**
 * The order of keys does not count. Each number of a vector counts to its last bit, as a 64-bit float; but a zero has no
 * sign, because numbers that came as JSON text have none there.
 *
 * @returns SHA-256, in hexadecimal digits
 */
export function pointDigest({ payload, vector }: PointContent): string {
  return hash('sha256', canonicalJson({ payload: payload ?? {}, vector: digested(vector ?? []) }), 'hex');
}

/** A vector with the digest of each list of numbers in its place, which takes a fraction of the time of their text. */
function digested(vector: unknown): unknown {
  if (vector instanceof Float32Array) return vectorDigest(vector);
  if (Array.isArray(vector)) return vector.every(isNumber) ? vectorDigest(vector) : vector.map(digested);
  if (!isObject(vector)) return vector;
  return Object.fromEntries(Object.entries(vector).map(([name, value]) => [name, digested(value)]));
}

const isNumber = (value: unknown): value is number => typeof value === 'number';

/** Holds the numbers of one vector after the other: most vectors of a collection have one length. */
let numbers = new Float64Array(0);

function vectorDigest(vector: ArrayLike<number>): string {
  if (numbers.length !== vector.length) numbers = new Float64Array(vector.length);
  for (let index = 0; index < vector.length; index += 1) numbers[index] = (vector[index] as number) + 0;
  return hash('sha256', numbers, 'hex');
}
