import { hash, timingSafeEqual } from 'node:crypto';

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

/** The value that a header presents as `Bearer <value>`; undefined for anything else. */
export function bearerIn(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** A virtual key's name in records: 128 bits of a hash, the same in every process that knows the key. */
export function keyId(value: string): string {
  return `k_${hash('sha256', `holdfast virtual key\n${value}`, 'hex').slice(0, 32)}`;
}

/**
 * Whether two values are one, by their ids: whatever was presented, two hashes of one length are compared in constant
 * time (G19). A key among many is found by its hash alone, so that a guess learns nothing from how long that takes.
 */
export function sameKey(id: string, other: string): boolean {
  const [one, two] = [Buffer.from(id), Buffer.from(other)];
  return one.length === two.length && timingSafeEqual(one, two);
}
