import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  createSecretFile,
  readTokenFile,
  removeSecretFile,
  replaceSecretFile,
} from '../../../core/kernel/secret-file.ts';
import type { RingKeys } from './key-ring.ts';

/** The name of the ingest key, in the document's table of keys and as a file. */
export const INGEST_KEY_NAME = 'otel_ingest_api_key';

/**
 * The ingest key of a Holdfast that is its own collector: a file of the data folder, made at the first start. While it
 * is being rotated the key before it lies beside it and is accepted too.
 */
export class OwnKey {
  readonly file: string;
  readonly #previous: string;

  /** @param dataDir absolute path */
  constructor(dataDir: string) {
    this.file = join(dataDir, 'secrets', INGEST_KEY_NAME);
    this.#previous = `${this.file}.previous`;
  }

  /** @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CONFIG_SECRET_FOLDER */
  read(): RingKeys {
    createSecretFile(this.file, line(randomUUID()));
    const current = readTokenFile(this.file);
    const previous = existsSync(this.#previous) ? [readTokenFile(this.#previous)] : [];
    return { tokens: [...new Set([current, ...previous])], current };
  }

  /** Makes another key; the one there is stays accepted until `retire`. */
  regenerate(): void {
    // Kept first: a crash in between leaves the same key twice, never none that producers know.
    replaceSecretFile(this.#previous, line(readTokenFile(this.file)));
    replaceSecretFile(this.file, line(randomUUID()));
  }

  /** Ends the overlap: only the newest key admits from now on. */
  retire(): void {
    removeSecretFile(this.#previous);
  }
}

function line(token: string): Buffer {
  return Buffer.from(`${token}\n`);
}
