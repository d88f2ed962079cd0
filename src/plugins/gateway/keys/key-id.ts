import { hash } from 'node:crypto';

/** A virtual key's name in records: 128 bits of a hash, the same in every process that knows the key. */
export function keyId(value: string): string {
  return `k_${hash('sha256', `holdfast virtual key\n${value}`, 'hex').slice(0, 32)}`;
}
