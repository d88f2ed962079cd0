import { hash, timingSafeEqual } from 'node:crypto';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import type { AccessContext } from '../../../machines/gateway/key.ts';
import { keyActor } from './actor.ts';

/** A virtual key with the state of its actor. */
export interface KeyView {
  /** The actor's key: the id of the first value of this virtual key. */
  readonly id: string;
  readonly state: string;
  readonly context: AccessContext;
}

/** What recognizes a credential in a request. */
export type KeyLookup = Pick<KeyDirectory, 'find' | 'isMaster' | 'isSession'>;

export interface KeyDirectoryOptions {
  /** @returns the id of the master key as it is now */
  readonly masterId: () => string;
  /** @returns whether a value is a session id that this gateway sealed */
  readonly isSession: (value: string) => boolean;
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
    return sameKey(valueId, this.#options.masterId());
  }

  /** @param value whether it is a session id of this gateway, which looks random and is no key */
  isSession(value: string): boolean {
    return this.#options.isSession(value);
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
