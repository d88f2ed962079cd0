import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  createSecretFile,
  readTokenFile,
  removeSecretFile,
  replaceSecretFile,
} from '../../core/kernel/secret-file.ts';
import { type Finding, readConfigFile, watchConfigFile } from './effective-config.ts';
import type { RingKeys } from './key-ring.ts';

/** The result of reading a source of keys. */
export interface Reading extends RingKeys {
  readonly findings: readonly Finding[];
}

/** Where ingest keys come from. */
export interface KeySource {
  /** `file`: a collector's effective config; `own`: we are the collector. */
  readonly kind: 'file' | 'own';
  /** For people. */
  readonly place: string;
  read(): Reading;
  /** @returns ends the watch */
  watch(changed: () => void): () => void;
}

/** @param file absolute path of the effective config */
export function fileSource(file: string, lookEveryMs: number): KeySource {
  // A collector keeps its last good config, and so do we.
  let good: RingKeys = { tokens: [], reason: `${file} can't be read` };
  return {
    kind: 'file',
    place: file,
    read() {
      const { tokens, ingestKey, findings } = readConfigFile(file);
      if (findings[0]?.code !== 'unreadable') {
        good = { tokens, current: ingestKey, reason: findings[0]?.text ?? 'it holds none' };
      }
      return { ...good, findings };
    },
    watch: (changed) => watchConfigFile(file, lookEveryMs, changed),
  };
}

export function ownSource(key: OwnKey): KeySource {
  return {
    kind: 'own',
    place: key.file,
    read: () => ({ ...key.read(), findings: [] }),
    watch: () => () => {},
  };
}

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

  /** Makes another key; the present one stays accepted until `retire`. */
  regenerate(): void {
    // The present key is kept first: a crash in between leaves the same key twice, and producers keep an accepted one.
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
