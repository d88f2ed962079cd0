import type { AnyMachineSnapshot } from 'xstate';
import { KernelError } from '../errors/kernel-error.ts';
import { parseActorRef } from '../ids.ts';
import type { Blobs } from '../log/event-log.ts';
import type { LogRecord } from '../log/record.ts';
import { BlobHolders } from './blob-holders.ts';
import { Elsewhere } from './elsewhere.ts';
import type { ActorState } from './transition.ts';
import type { Registered } from './versions.ts';
import { MachineStepper } from './xstate.ts';

/** A type of actor that some plugin registers in this run. */
export interface ActorType {
  readonly definition: Registered;
  readonly stepper: MachineStepper;
}

/** An actor that acts on this host. */
export interface LiveActor extends ActorType {
  readonly state: ActorState;
  /** XState's snapshot, restored from the state when first needed. */
  snapshot?: AnyMachineSnapshot;
}

/**
 * The actors that this host knows, each in one of three places: it lives here; another host may hold its type; or no plugin
 * registers its type in this run. All of their states are saved.
 */
export class ActorTable {
  readonly #types = new Map<string, ActorType>();
  readonly #live = new Map<string, LiveActor>();
  /** States of actors whose type no plugin registers in this run. */
  readonly #carried = new Map<string, ActorState>();
  readonly #elsewhere = new Elsewhere();
  readonly #dirty = new Set<ActorState>();
  readonly #blobHolders = new BlobHolders();

  /** The actors that live here, by address, as they are now. */
  get live(): ReadonlyMap<string, LiveActor> {
    return this.#live;
  }

  register(definition: Registered): void {
    this.#types.set(definition.type, { definition, stepper: new MachineStepper(definition.machine) });
  }

  isRegistered(type: string): boolean {
    return this.#types.has(type);
  }

  /** @throws HF_ACTOR_UNKNOWN nobody registers the type */
  registered(ref: string): ActorType {
    const type = this.#types.get(parseActorRef(ref).type);
    if (!type) throw new KernelError('HF_ACTOR_UNKNOWN', { actor: ref });
    return type;
  }

  /** @throws HF_ACTOR_ELSEWHERE another host may hold the type; HF_ACTOR_UNKNOWN nobody registers it */
  actingType(ref: string): ActorType {
    if (this.isHeldBack(ref)) throw new KernelError('HF_ACTOR_ELSEWHERE', { actor: ref });
    return this.registered(ref);
  }

  /** Whether another host may hold the actors of its type, so that it does not act here. */
  isHeldBack(ref: string): boolean {
    return this.#elsewhere.holds(ref);
  }

  /** A record in the words of its type of actor; undefined where that has none. */
  describe(record: LogRecord): string | undefined {
    try {
      return this.#types.get(parseActorRef(record.actor).type)?.definition.describe?.(record);
    } catch {
      return undefined; // perhaps a record of another release
    }
  }

  /** Takes a state from the log. @param isSaved with the actors, too @returns the actor, if it lives here */
  recovered(state: ActorState, isSaved: boolean): LiveActor | undefined {
    const type = this.#types.get(parseActorRef(state.ref).type);
    if (!isSaved) this.#dirty.add(state);
    this.#blobHolders.found(state);
    if (!type) {
      this.#carried.set(state.ref, state);
      return undefined;
    }
    if (this.#elsewhere.holds(state.ref)) {
      this.#elsewhere.keep(state);
      return undefined;
    }
    const live: LiveActor = { ...type, state };
    this.#live.set(state.ref, live);
    return live;
  }

  /** Keeps the actors of some types from acting here. */
  holdBack(types: readonly string[]): void {
    this.#elsewhere.hold(types);
  }

  /** Lets the actors of some types act here again. */
  release(types: readonly string[]): void {
    this.#elsewhere.release(types);
  }

  /** Ends the actors here of which that is so; their states are kept. */
  setAside(isSetAside: (ref: string) => boolean): void {
    for (const { state } of [...this.#live.values()]) {
      if (!isSetAside(state.ref)) continue;
      this.#live.delete(state.ref);
      this.#elsewhere.keep(state);
    }
  }

  /** Has an actor whose state was set aside live here, from that state or from another. */
  takeUp(live: LiveActor): void {
    this.#elsewhere.remove(live.state.ref);
    this.#live.set(live.state.ref, live);
  }

  /** Has an actor live here that was never met; one of its address that a takeover did not name was another. */
  begin(live: LiveActor): void {
    const dropped = this.#elsewhere.remove(live.state.ref);
    if (dropped) {
      this.#dirty.delete(dropped);
      this.#blobHolders.forget(dropped);
    }
    this.#live.set(live.state.ref, live);
  }

  /** Has a state saved with the next snapshot. */
  changed(state: ActorState): void {
    this.#dirty.add(state);
  }

  /** Takes the bodies that a state from another host names. */
  foundBlobs(state: ActorState): void {
    this.#blobHolders.found(state);
  }

  /** Takes the bodies that come with a record. @returns those that the state after it still names */
  takeBlobs(state: ActorState, blobs: Blobs): Blobs | undefined {
    return this.#blobHolders.take(state, blobs);
  }

  /** The state of an actor, whether it lives here or was set aside. */
  known(ref: string): ActorState | undefined {
    return this.#live.get(ref)?.state ?? this.#elsewhere.get(ref);
  }

  /** The live states of all actors, or of those of one type. */
  states(type?: string): Readonly<ActorState>[] {
    const states = [...this.#live.values()].map((live) => live.state);
    return type === undefined ? states : states.filter((state) => parseActorRef(state.ref).type === type);
  }

  /** The states of actors that do not act here now because another host may hold them. */
  asideStates(): Iterable<ActorState> {
    return this.#elsewhere.states();
  }

  /** All states, wherever the actor is. */
  allStates(): Readonly<ActorState>[] {
    return [...this.states(), ...this.#carried.values(), ...this.#elsewhere.states()];
  }

  /** The states that changed since the last call. */
  takeDirty(): ActorState[] {
    const states = [...this.#dirty];
    this.#dirty.clear();
    return states;
  }

  /** The actors that stored bodies belong to. */
  blobHolders(): Readonly<ActorState>[] {
    return this.#blobHolders.all();
  }
}
