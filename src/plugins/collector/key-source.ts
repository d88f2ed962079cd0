import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesApi } from '../../core/contracts/kubernetes.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { createSecretFile, removeSecretFile, replaceSecretFile } from '../../core/kernel/secret-file.ts';
import { type CollectorPods, readCollectorPods } from './cluster-keys.ts';
import { type Finding, readConfigFile, unreadable, watchConfigFile } from './effective-config.ts';
import type { RingKeys } from './key-ring.ts';

/** The result of reading a source of keys. */
export interface Reading extends RingKeys {
  readonly findings: readonly Finding[];
}

/** Where ingest keys come from. */
export interface KeySource {
  /** `file`: a collector's effective config; `pods`: the same within its pods; `own`: we are the collector. */
  readonly kind: 'file' | 'pods' | 'own';
  /** For people. */
  readonly place: string;
  read(): Reading;
  /** Brings what `read` gives up to date, where that takes a call. What goes wrong is a finding of the next reading. */
  refresh?(signal: AbortSignal): Promise<void>;
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

/**
 * The effective config of the collector's pods. Every pod's tokens admit; the current key is that of the first pod by name.
 *
 * @param cluster finds the cluster, which may start later
 */
export function podsSource(where: CollectorPods, cluster: () => KubernetesApi | undefined): KeySource {
  const labels = Object.entries(where.labels).map(([label, value]) => `${label}=${value}`);
  const place = `${where.file} in the pods ${labels.join(',')} of ${where.namespace}`;
  let good: RingKeys = { tokens: [], reason: 'it was not read yet' };
  let findings: readonly Finding[] = unreadable('it was not read yet').findings;
  const complain = (reason: string) => {
    findings = unreadable(reason).findings;
    if (good.tokens.length === 0) good = { tokens: [], reason };
  };
  const refresh = async (signal: AbortSignal): Promise<void> => {
    const api = cluster();
    if (!api) return complain('no cluster is configured (HOLDFAST_KUBECONFIG)');
    try {
      const pods = await readCollectorPods(api, where, signal);
      if (pods.length === 0) return complain('no such pod runs');
      const readable = pods.filter(({ config }) => config.findings[0]?.code !== 'unreadable');
      const [first] = readable;
      findings = [
        ...new Map(pods.flatMap(({ config }) => config.findings).map((one) => [one.code, one])).values(),
      ];
      if (!first) return;
      good = {
        tokens: [...new Set(readable.flatMap(({ config }) => config.tokens))],
        current: first.config.ingestKey,
        reason: first.config.findings[0]?.text ?? 'it holds none',
      };
    } catch (error) {
      if (!isCoded(error)) throw error;
      complain(error.what.replace(/\.$/, ''));
    }
  };
  return {
    kind: 'pods',
    place,
    read: () => ({ ...good, findings }),
    refresh,
    watch(changed) {
      const ended = new AbortController();
      let isLooking = false;
      const look = async () => {
        if (isLooking) return;
        isLooking = true;
        await refresh(ended.signal).catch(() => {});
        isLooking = false;
        if (!ended.signal.aborted) changed();
      };
      const timer = setInterval(() => void look(), where.everyMs);
      timer.unref();
      return () => {
        clearInterval(timer);
        ended.abort();
      };
    },
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

/** The file of it where Holdfast is its own collector. @param dataDir absolute path */
export const ownKeyFile = (dataDir: string): string => join(dataDir, 'secrets', INGEST_KEY_NAME);

/** Makes the ingest keys where Holdfast is its own collector. */
export interface KeyMaker {
  /** The key in use, for producers on this machine. */
  readonly file: string;
  /** Makes another key; the present one stays accepted until `retire`. */
  regenerate(): void;
  /** Ends the overlap: only the newest key admits from now on. */
  retire(signal: AbortSignal): void | Promise<void>;
}

/**
 * The ingest key of a Holdfast that is its own collector: a file of the data folder, made at the first start. While it
 * is being rotated the key before it lies beside it and is accepted too.
 */
export class OwnKey implements KeyMaker {
  readonly file: string;
  readonly #previous: string;

  /** @param dataDir absolute path */
  constructor(dataDir: string) {
    this.file = ownKeyFile(dataDir);
    this.#previous = `${this.file}.previous`;
  }

  /** @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CONFIG_SECRET_FOLDER */
  read(): RingKeys {
    createSecretFile(this.file, line(randomUUID()));
    const current = readTokenFile(this.file);
    const previous = existsSync(this.#previous) ? [readTokenFile(this.#previous)] : [];
    return { tokens: [...new Set([current, ...previous])], current };
  }

  regenerate(): void {
    // The present key is kept first: a crash in between leaves the same key twice, and producers keep an accepted one.
    replaceSecretFile(this.#previous, line(readTokenFile(this.file)));
    replaceSecretFile(this.file, line(randomUUID()));
  }

  retire(): void {
    removeSecretFile(this.#previous);
  }
}

function line(token: string): Buffer {
  return Buffer.from(`${token}\n`);
}
