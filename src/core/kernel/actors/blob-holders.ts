import { FINGERPRINT_PREFIX } from '../ids.ts';
import type { Blobs } from '../log/event-log.ts';
import type { ActorState } from './transition.ts';

/** The actors that stored bodies belong to: their states name the keys of those that are still needed. */
export class BlobHolders {
  readonly #states = new Set<ActorState>();

  /** Takes an actor whose state comes from a log, if it names a body. */
  found(state: ActorState): void {
    if (JSON.stringify(state).includes(`"${FINGERPRINT_PREFIX}`)) this.#states.add(state);
  }

  /**
   * Takes the bodies that come with a record.
   *
   * @param state after the record
   * @returns those whose keys the state or its open effects hold; nobody could ever read the others
   */
  take(state: ActorState, blobs: Blobs): Blobs | undefined {
    const text = JSON.stringify(state);
    const named = [...blobs].filter(([key]) => text.includes(`"${key}"`));
    if (named.length === 0) return undefined;
    this.#states.add(state);
    return new Map(named);
  }

  forget(state: ActorState): void {
    this.#states.delete(state);
  }

  all(): Readonly<ActorState>[] {
    return [...this.#states];
  }
}
