import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import { createSecretFile, readTokenFile } from '../../../core/kernel/secret-file.ts';
import type { KeyContext } from '../../../machines/gateway/key.ts';
import { keyActor } from './actor.ts';

/** A virtual key with the state of its actor. */
export interface KeyView {
  /** The actor's key: the id of the first value of this virtual key. */
  readonly id: string;
  readonly state: string;
  readonly context: KeyContext;
}

/** What recognizes a credential in a request. */
export type KeyLookup = Pick<KeyDirectory, 'find' | 'isMaster' | 'isSession'>;

export interface KeyDirectoryOptions {
  /** Gives the id of the master key as it is now. */
  readonly master: Pick<MasterKey, 'id'>;
  /** Knows the session ids that this gateway sealed. */
  readonly sessions: { knows(value: string): boolean };
}

/**
 * Finds the virtual key that a presented value belongs to. It is an index over the actors: values are known by their
 * hashes only, so that every wrong guess takes the same time (G19).
 */
export class KeyDirectory {
  readonly #actors: ActorSystem;
  readonly #options: KeyDirectoryOptions;
  /** Ids of the values that keys were rotated to, each with the id of its key. The first value's id is the key's id. */
  readonly #rotated = new Map<string, string>();

  constructor(actors: ActorSystem, options: KeyDirectoryOptions) {
    this.#actors = actors;
    this.#options = options;
    for (const { id } of this.list()) this.index(id);
  }

  /** Adds the values of a key to the index. Call it after the key was rotated. */
  index(id: string): void {
    for (const valueId of Object.keys(this.get(id)?.context.presents ?? {})) {
      if (valueId !== id) this.#rotated.set(valueId, id);
    }
  }

  /** @param valueId id of a presented value @returns the id of its key */
  find(valueId: string): string | undefined {
    return this.#rotated.get(valueId) ?? (this.get(valueId) && valueId);
  }

  /** @param valueId id of a presented value */
  isMaster(valueId: string): boolean {
    return sameKey(valueId, this.#options.master.id());
  }

  /** @param value whether it is a session id of this gateway, which looks random and is no key */
  isSession(value: string): boolean {
    return this.#options.sessions.knows(value);
  }

  get(id: string): KeyView | undefined {
    const actor = this.#actors.get(keyActor, id);
    return actor && { id, state: String(actor.value), context: actor.context };
  }

  list(): KeyView[] {
    return this.#actors
      .list(keyActor)
      .map(({ key, value, context }) => ({ id: key, state: String(value), context }));
  }
}

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

/** @returns the value of a header `Bearer <value>`; undefined for any other header */
export function bearerIn(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** The id of a value in records: 128 bits of its hash, the same in every process. */
export function keyId(value: string): string {
  return `k_${hash('sha256', `holdfast virtual key\n${value}`, 'hex').slice(0, 32)}`;
}

/** Compares two ids in constant time (G19). */
export function sameKey(id: string, other: string): boolean {
  const [one, two] = [Buffer.from(id), Buffer.from(other)];
  return one.length === two.length && timingSafeEqual(one, two);
}

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
