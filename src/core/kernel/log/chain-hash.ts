// Apart from `chain.ts`: the thread that writes the log loads this file, and must not load the schemas that reading needs.
import { hash } from 'node:crypto';

/** The hash that the first record chains to. */
export const CHAIN_START = '0'.repeat(64);

/**
 * The hash of a record: SHA-256, as hex, over the hash of the record before (its hex) followed by this one's body.
 * An edit, a gap or a swap breaks it at the first record that is not what was written.
 */
export function chainHash(previous: string, body: string): string {
  return hash('sha256', previous + body, 'hex');
}
