import { parseActorRef } from '../ids.ts';
import type { ActorState } from './transition.ts';

/**
 * The types whose actors take no events here, because another host may hold them, and the states of those actors as this
 * host's log has them: they are saved with the others, for when this host goes on from them.
 */
export class Elsewhere {
  readonly #types = new Set<string>();
  readonly #states = new Map<string, ActorState>();

  hold(types: Iterable<string>): void {
    for (const type of types) this.#types.add(type);
  }

  release(types: Iterable<string>): void {
    for (const type of types) this.#types.delete(type);
  }

  /** @returns whether an actor's type is held here */
  holds(ref: string): boolean {
    return this.#types.size > 0 && this.#types.has(parseActorRef(ref).type);
  }

  keep(state: ActorState): void {
    this.#states.set(state.ref, state);
  }

  get(ref: string): ActorState | undefined {
    return this.#states.get(ref);
  }

  /** Forgets the state of an actor that lives here now. @returns it */
  remove(ref: string): ActorState | undefined {
    const state = this.#states.get(ref);
    this.#states.delete(ref);
    return state;
  }

  states(): Iterable<ActorState> {
    return this.#states.values();
  }
}
