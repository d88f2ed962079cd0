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
