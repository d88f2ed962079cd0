import { readConfigFile, watchConfigFile } from '../config/config-file.ts';
import type { Finding } from '../config/effective-config.ts';
import type { RingKeys } from './key-ring.ts';
import type { OwnKey } from './own-key.ts';

/** What a source of keys says when it is read. */
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
  /** @returns ends it */
  watch(changed: () => void): () => void;
}

/** @param file absolute path of the effective config */
export function fileSource(file: string, lookEveryMs: number): KeySource {
  // A collector goes on with its last good config, and so do we.
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
