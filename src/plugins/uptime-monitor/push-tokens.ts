import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { createSecretFile, readTokenFile } from '../../core/secrets/index.ts';

/** Tokens made between two turns of the event loop: each is made durable, which takes its time. */
const AT_ONCE = 20;

/**
 * The push tokens of the monitors, one file each (`<folder>/<name>`, mode 0600), made where there is none. Kept in
 * memory as hashes alone: a look-up by hash tells nothing of how much of a guess was right.
 */
export class PushTokens {
  readonly #folder: string;
  readonly #names = new Map<string, { readonly name: string; readonly digest: Buffer }>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads the tokens, and makes those that are missing.
   *
   * @throws HF_CONFIG_SECRET_* a file cannot be used
   */
  async load(names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const [index, name] of names.entries()) {
      if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      const file = join(this.#folder, name);
      createSecretFile(file, Buffer.from(`${randomBytes(24).toString('base64url')}\n`));
      this.#add(name, readTokenFile(file));
    }
  }

  /** @returns whose token it is */
  nameOf(token: string): string | undefined {
    const digest = hash('sha256', token, 'buffer');
    const known = this.#names.get(digest.toString('base64'));
    return known && timingSafeEqual(known.digest, digest) ? known.name : undefined;
  }

  #add(name: string, token: string): void {
    const digest = hash('sha256', token, 'buffer');
    this.#names.set(digest.toString('base64'), { name, digest });
  }
}
