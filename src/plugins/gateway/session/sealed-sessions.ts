import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { createSecretFile, readSecretFile } from '../../../core/kernel/secret-file.ts';

/** Characters of an upstream's own session id that are kept at most. */
export const LONGEST_SESSION = 1_024;

/** What a session id carries: there is no table of sessions anywhere. */
const sessionSchema = z.strictObject({
  /** The upstream's session, by route; a route without one keeps none (on the aggregate an empty one). */
  upstream: z.record(z.string(), z.string().max(LONGEST_SESSION)),
  /** Protocol revision that was agreed on. */
  version: z.string().max(32),
  /** Revisions that upstreams of the aggregate agreed on instead, by route. */
  versions: z.record(z.string(), z.string().max(32)).optional(),
  /** What the client of an aggregate said of itself: upstreams that come later get the same. */
  client: z
    .strictObject({
      capabilities: z.record(z.string(), z.unknown()),
      clientInfo: z.record(z.string(), z.unknown()),
    })
    .optional(),
});

export type Session = z.infer<typeof sessionSchema>;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_BYTES = 4;
const KEY_BYTES = 32;
/** Characters of a session id, which travels in a header with every request. */
export const LONGEST_ID = 8_192;
const OPENED_KEPT = 10_000;

interface SealingKey {
  readonly id: Buffer;
  readonly key: KeyObject;
}

/**
 * Seals the state of a session into its id (G18): encrypted, authenticated, and bound to the key and the endpoint that
 * opened it. Every process with the same key file serves it, before and after a restart.
 */
export class SealedSessions {
  readonly #keys: readonly SealingKey[];
  /** By id, each with whose it is. */
  readonly #opened = new LRUCache<string, { readonly session: Session; readonly binding: string }>({
    max: OPENED_KEPT,
  });

  /**
   * @param keys the first seals, all of them open: a new key is put before the old one, which goes when its sessions
   * have
   */
  constructor(keys: readonly Buffer[]) {
    this.#keys = keys.map((bytes) => ({
      id: hash('sha256', bytes, 'buffer').subarray(0, KEY_ID_BYTES),
      key: createSecretKey(bytes),
    }));
  }

  /**
   * Reads the key files; the first is made when it is not there.
   *
   * @param shared the key of a cluster, which seals; those of files open what they sealed before
   * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
   */
  static fromFiles(files: readonly [string, ...string[]], shared?: Buffer): SealedSessions {
    createSecretFile(files[0], randomBytes(KEY_BYTES));
    const ofFiles = files.map((file) => {
      const bytes = readSecretFile(file);
      if (bytes.length === KEY_BYTES) return bytes;
      const reason = `it holds ${bytes.length} bytes, not ${KEY_BYTES}`;
      throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
    });
    return new SealedSessions(shared ? [shared, ...ofFiles] : ofFiles);
  }

  /** @param binding key and endpoint, e.g. `k_…/memory` @returns a session id: visible ASCII */
  seal(session: Session, binding: string): string {
    const [sealing] = this.#keys;
    if (!sealing) throw new RangeError('no sealing key');
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', sealing.key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(binding));
    const body = Buffer.concat([cipher.update(JSON.stringify(session), 'utf8'), cipher.final()]);
    const id = Buffer.concat([sealing.id, nonce, cipher.getAuthTag(), body]).toString('base64url');
    if (id.length <= LONGEST_ID) this.#opened.set(id, { session, binding });
    return id;
  }

  /** @returns the session, or undefined for an id that is foreign, changed, or another key's */
  open(id: string, binding: string): Session | undefined {
    if (id.length > LONGEST_ID) return undefined;
    const cached = this.#opened.get(id);
    if (cached) return cached.binding === binding ? cached.session : undefined;
    const bytes = Buffer.from(id, 'base64url');
    if (bytes.toString('base64url') !== id) return undefined; // another spelling would be another session that never ended
    const session = this.#decrypt(bytes, binding);
    if (session) this.#opened.set(id, { session, binding });
    return session;
  }

  /** @param headers of a request @returns the session that it names, as `open` does */
  of(headers: NodeJS.Dict<string | string[]>, binding: string): Session | undefined {
    const id = headers['mcp-session-id'];
    return typeof id === 'string' ? this.open(id, binding) : undefined;
  }

  /** Whether a text is an id that was sealed or opened here lately, whosever it is. */
  knows(id: string): boolean {
    return this.#opened.has(id);
  }

  #decrypt(bytes: Buffer, binding: string): Session | undefined {
    const sealing = this.#keys.find(({ id }) => id.equals(bytes.subarray(0, KEY_ID_BYTES)));
    const head = KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;
    if (!sealing || bytes.length <= head) return undefined;
    const nonce = bytes.subarray(KEY_ID_BYTES, KEY_ID_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', sealing.key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(binding));
    decipher.setAuthTag(bytes.subarray(KEY_ID_BYTES + NONCE_BYTES, head));
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(head)), decipher.final()]);
      return sessionSchema.parse(JSON.parse(plain.toString('utf8')));
    } catch {
      return undefined; // a foreign id is no error of ours
    }
  }
}
