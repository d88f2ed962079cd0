import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createSecretFile, readTokenFile } from '../../../core/kernel/secret-file.ts';
import { keyId } from './directory.ts';

const MAX_AGE_MS = 5_000;

/**
 * The key of the admin endpoints (G14, G25). Only its id is kept in memory. The file is read again every five seconds,
 * so that a changed key needs no restart.
 */
export class MasterKey {
  readonly #read: () => string;
  #id = '';
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(read: () => string) {
    this.#read = read;
    this.id();
  }

  /**
   * Reads it from the given file, from `HOLDFAST_MASTER_KEY_FILE` or `HOLDFAST_MASTER_KEY`, else from the data folder,
   * where it is generated at the first start.
   *
   * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
   */
  static open(dataDir: string, file?: string, env: NodeJS.ProcessEnv = process.env): MasterKey {
    const named = file ?? env.HOLDFAST_MASTER_KEY_FILE;
    if (named) return new MasterKey(() => readTokenFile(named));
    const given = env.HOLDFAST_MASTER_KEY;
    if (given) return new MasterKey(() => given);
    const own = join(dataDir, 'secrets', 'master-key');
    createSecretFile(own, Buffer.from(`sk-${randomBytes(32).toString('base64url')}\n`));
    return new MasterKey(() => readTokenFile(own));
  }

  /** @returns the id of the key. While the file can't be read, the last key stays valid. */
  id(): string {
    const now = performance.now();
    if (now - this.#readAt < MAX_AGE_MS) return this.#id;
    try {
      this.#id = keyId(this.#read());
    } catch (error) {
      if (this.#id === '') throw error;
    }
    this.#readAt = now;
    return this.#id;
  }
}
