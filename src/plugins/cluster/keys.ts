import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { readSecretFile } from '../../core/kernel/secret-file.ts';
import { ClusterError } from './errors.ts';

/** As long as the keys that are derived from it, so that none of them is easier to guess. */
const SHORTEST_BYTES = 32;
const DERIVED_BYTES = 32;

/** What a code vouches for. */
export interface Sealed {
  readonly subject: string;
  /** The headers that count, in any order. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Where it belongs beside its subject, e.g. the stream: part of the code, though not of the message. */
  readonly place: string;
}

/**
 * The key that the hosts of a cluster share (docs/cluster.md, "Concepts"). A message without a code by this key comes from
 * nobody of the cluster, whoever may write to its subject.
 */
export class ClusterKey {
  readonly #key: Buffer;
  /** A key object, made once: from bytes one would be made anew for each code, which takes longer than the code. */
  readonly #messages: KeyObject;

  /** @param key at least 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
    this.#messages = createSecretKey(deriveKey(key, 'messages'));
  }

  /**
   * Reads the key from its file: at least 32 bytes of any kind, made for example by `openssl rand -out FILE 64`.
   *
   * @param file absolute path of a file of mode 0600
   * @throws HF_CLUSTER_KEY there is no such file, or it cannot be opened
   * @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_OWNER, HF_CONFIG_SECRET_FOLDER
   * @throws HF_CONFIG_SECRET_INVALID it is shorter than 32 bytes, larger than 64 KiB, or no regular file
   */
  static open(file: string): ClusterKey {
    const key = readKeyFile(file);
    if (key.length < SHORTEST_BYTES) {
      const reason = `a key of a cluster has at least ${SHORTEST_BYTES} bytes`;
      throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
    }
    return new ClusterKey(key);
  }

  /** The key of fingerprints, which are alike on every host. */
  get fingerprints(): Buffer {
    return deriveKey(this.#key, 'fingerprints');
  }

  /** @returns 32 bytes for one purpose, the same on every host */
  derive(purpose: string): Buffer {
    return deriveKey(this.#key, `for ${purpose}`);
  }

  /** @returns the code of a message (HMAC with SHA-256), in base64url */
  mac({ subject, headers, body, place }: Sealed): string {
    const hmac = createHmac('sha256', this.#messages);
    const names = Object.keys(headers).sort();
    // Lengths stand before the values, so that no two messages are the same bytes.
    const parts = [place, subject, ...names.flatMap((name) => [name, headers[name] ?? ''])];
    hmac.update(parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join('\n'));
    return hmac.update(`\n${body.length}:`).update(body).digest('base64url');
  }

  /** @returns whether a code is that of a message; takes equally long for each wrong one */
  vouches(sealed: Sealed, code: string): boolean {
    const [own, given] = [Buffer.from(this.mac(sealed)), Buffer.from(code)];
    return own.length === given.length && timingSafeEqual(own, given);
  }
}

function readKeyFile(file: string): Buffer {
  try {
    return readSecretFile(file);
  } catch (cause) {
    if (!isCoded(cause, 'HF_CONFIG_SECRET_MISSING')) throw cause;
    throw new ClusterError('HF_CLUSTER_KEY', { file, reason: cause.details.reason }, { cause });
  }
}

/** Derives a key for one purpose (HKDF with SHA-256). Who learns it learns neither the file nor any other derived key. */
function deriveKey(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `holdfast cluster: ${purpose}`, DERIVED_BYTES));
}
