import { hkdfSync } from 'node:crypto';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { readSecretFile } from '../../kernel/secret-file.ts';

/** As long as the keys that are derived from it, so that none of them is easier to guess. */
const SHORTEST_BYTES = 32;
const DERIVED_BYTES = 32;

/**
 * Reads the key that all hosts of a cluster share (docs/cluster.md, "Concepts"): at least 32 bytes of any kind, made for
 * example by `openssl rand -out FILE 64`.
 *
 * @param file absolute path of a file of mode 0600
 * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_OWNER, HF_CONFIG_SECRET_FOLDER
 * @throws HF_CONFIG_SECRET_INVALID it is shorter than 32 bytes, larger than 64 KiB, or no regular file
 */
export function readClusterKey(file: string): Buffer {
  const key = readSecretFile(file);
  if (key.length < SHORTEST_BYTES) {
    const reason = `a key of a cluster has at least ${SHORTEST_BYTES} bytes`;
    throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
  }
  return key;
}

/**
 * Derives a key for one purpose (HKDF with SHA-256). Who learns it learns neither the file nor any other derived key.
 *
 * @param purpose what it is for, e.g. `messages`; the same on every host
 * @returns 32 bytes
 */
export function deriveKey(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `holdfast cluster: ${purpose}`, DERIVED_BYTES));
}
