import { hash, timingSafeEqual } from 'node:crypto';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import { actorRef, parseActorRef } from '../../../core/kernel/ids.ts';
import type { AccessContext } from '../../../machines/gateway/key.ts';

export const KEY_ACTOR = 'gateway.key';

/** A key as its actor knows it. */
export interface KeyView {
  /** The actor's key: the id of the first value it was presented by. */
  readonly id: string;
  readonly state: string;
  readonly context: AccessContext;
}

/**
 * Which actor a presented value belongs to. Nothing but an index over the actors: values are known by their hash alone,
 * so finding one takes the same time for every wrong guess (G19).
 */
export class KeyRegistry {
  readonly #actors: ActorSystem;
  /** Values that keys were rotated to; the first value of a key is its id. */
  readonly #rotated = new Map<string, string>();

  constructor(actors: ActorSystem) {
    this.#actors = actors;
    for (const { id } of this.list()) this.index(id);
  }

  /** Learns the values of a key anew, after it was rotated. */
  index(id: string): void {
    for (const presented of Object.keys(this.get(id)?.context.presents ?? {})) {
      if (presented !== id) this.#rotated.set(presented, id);
    }
  }

  /** @param presented id of the presented value @returns the key's id */
  find(presented: string): string | undefined {
    return this.#rotated.get(presented) ?? (this.get(presented) && presented);
  }

  get(id: string): KeyView | undefined {
    const state = this.#actors.snapshot(actorRef(KEY_ACTOR, id));
    if (!state) return undefined;
    return { id, state: String(state.value), context: state.context as unknown as AccessContext };
  }

  list(): KeyView[] {
    return this.#actors.list(KEY_ACTOR).map(({ ref, value, context }) => ({
      id: parseActorRef(ref).key,
      state: String(value),
      context: context as unknown as AccessContext,
    }));
  }
}

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

/** The value that a header presents as `Bearer <value>`; undefined for anything else. */
export function bearerIn(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** A virtual key's name in records: 128 bits of a hash, the same in every process that knows the key. */
export function keyId(value: string): string {
  return `k_${hash('sha256', `holdfast virtual key\n${value}`, 'hex').slice(0, 32)}`;
}

/**
 * Whether two values are one, by their ids: whatever was presented, two hashes of one length are compared in constant
 * time (G19). A key among many is found by its hash alone, so that a guess learns nothing from how long that takes.
 */
export function sameKey(id: string, other: string): boolean {
  const [one, two] = [Buffer.from(id), Buffer.from(other)];
  return one.length === two.length && timingSafeEqual(one, two);
}
