import { hash } from 'node:crypto';

/**
 * The hash of a record: over the hash of the record before and this one's body. An edit, a gap or a swap breaks it
 * at the first record that is not what was written.
 */
export function chainHash(previous: Uint8Array, body: string): Buffer {
  const text = Buffer.from(body, 'utf8');
  const input = Buffer.allocUnsafe(previous.length + text.length);
  input.set(previous, 0);
  input.set(text, previous.length);
  return hash('sha256', input, 'buffer');
}
