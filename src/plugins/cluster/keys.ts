import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey, readClusterKey } from '../../core/host/secrets/cluster-key.ts';

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
  readonly #messages: Buffer;

  /** @param key at least 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
    this.#messages = deriveKey(key, 'messages');
  }

  /**
   * @param file absolute path
   * @throws HF_CONFIG_SECRET_MISSING and its like, see `readClusterKey`
   */
  static open(file: string): ClusterKey {
    return new ClusterKey(readClusterKey(file));
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
