import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { type Clock, newCorrelation, RecordClock } from '../clock.ts';
import type { ClockJump } from '../clock-jumps.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { actorRef, parseActorRef } from '../ids.ts';
import { toPlain } from '../json.ts';
import type { Blobs, EventLog } from '../log/event-log.ts';
import { ADOPT, CLOCK, INIT, type LogEvent, type LogRecord, MIGRATE, type Origin } from '../log/record.ts';
import { adoptionEvents, decideAdoption, type Inheritance, newestTakeover } from './adoption.ts';
import { BlobHolders } from './blob-holders.ts';
import { ClockFollowing } from './clock-following.ts';
import type { ActorDefinition, EventOf, UncheckedEvent } from './definition.ts';
import { Elsewhere } from './elsewhere.ts';
import { Mailbox, type SendMeta } from './mailbox.ts';
import { type EffectRunner, PendingEffects } from './pending-effects.ts';
import type { Recovered } from './recover.ts';
import {
  type ActorSnapshot,
  type ActorState,
  applyRecord,
  decide,
  decideInit,
  type OpenTimer,
  recordOf,
  snapshotOf,
} from './transition.ts';
import { decideMigration, type Registered } from './versions.ts';
import { MachineStepper } from './xstate.ts';

/** The result of sending an event. */
export interface Sent {
  /** The record, unless the event still waits for the log to have room. */
  readonly record: LogRecord | undefined;
  /** Resolves with the record once it was decided: its effects and its durability are still to come. */
  decided(): Promise<LogRecord>;
  /** Resolves with the record once it is durable. */
  durable(): Promise<LogRecord>;
}

/** The users whose processes began stories, by correlation id; none where no local process did. */
export interface Senders {
  get(correlation: string): LogRecord['uid'];
}

interface ActorType {
  readonly definition: Registered;
  readonly stepper: MachineStepper;
}

interface LiveActor extends ActorType {
  readonly state: ActorState;
  /** XState's snapshot, restored from the state when first needed. */
  snapshot?: AnyMachineSnapshot;
}

/**
 * The actors of one runtime. A transition is pure and runs to its end at once, so one mailbox serves all actors in order;
 * it fills only while the log has no room.
 */
export class ActorSystem {
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #time: RecordClock;
  readonly #types = new Map<string, ActorType>();
  readonly #actors = new Map<string, LiveActor>();
  /** States of actors whose type no plugin registers in this run. */
  readonly #carried = new Map<string, ActorState>();
  readonly #elsewhere = new Elsewhere();
  readonly #dirty = new Set<ActorState>();
  readonly #blobHolders = new BlobHolders();
  readonly #mailbox: Mailbox;
  readonly #clockFollowing: ClockFollowing;
  readonly #pendingEffects = new PendingEffects();
  readonly #onFailure: (record: LogRecord) => void;
  #senders: Senders | undefined;
  #seq: number;

  /**
   * @param newest seq and time of the newest record: numbers go on from there
   * @param onFailure called with records whose machine threw
   */
  constructor(
    log: EventLog,
    clock: Clock,
    newest: { seq: number; at: number },
    onFailure: (record: LogRecord) => void,
  ) {
    this.#log = log;
    this.#clock = clock;
    this.#time = new RecordClock(clock, newest.at);
    this.#seq = newest.seq;
    this.#onFailure = onFailure;
    const transition = this.#transition.bind(this);
    this.#mailbox = new Mailbox(() => log.hasRoom(), transition);
    this.#clockFollowing = new ClockFollowing(this.#time, {
      live: this.#actors,
      isRecording: () => this.#types.has(CLOCK.type),
      newestSeq: () => this.#seq,
      transition,
    });
    log.onDurable((seq) => this.#pendingEffects.durable(seq));
    log.onRoom(() => this.#mailbox.drain());
  }

  /** Registers a type of actor, before any actor is restored or sent to. */
  register(definition: Registered): void {
    this.#types.set(definition.type, { definition, stepper: new MachineStepper(definition.machine) });
  }

  /** Connects the dispatcher that carries effects out. */
  runEffectsWith(runner: EffectRunner): void {
    this.#pendingEffects.runWith(runner);
  }

  /** Has the records of what comes from outside name who sent it. */
  recordSendersOf(senders: Senders): void {
    this.#senders = senders;
  }

  /** Calls back each time that the wall clock was set, once it is recorded and the actors know it. */
  onClockJump(listener: (jump: ClockJump) => void): void {
    this.#clockFollowing.onJump(listener);
  }

  /**
   * Takes over the states of the actors from the log. Actors whose type nobody registers in this run are kept: their
   * states and bodies are saved with the others, for when their plugin is enabled again.
   *
   * Actors that an older version of their machine left are migrated, each by a record of its own.
   *
   * @param jumpedMs by how much the wall clock was set since the newest record, as far as that can be judged
   * @throws HF_MACHINE_VERSION an actor was recorded by a version that its definition does not take
   */
  restore({ states, savedSeq }: Recovered, jumpedMs = 0): void {
    const migrations: (() => void)[] = [];
    for (const state of states.values()) {
      const type = this.#types.get(parseActorRef(state.ref).type);
      if (state.seq > savedSeq) this.#dirty.add(state);
      this.#blobHolders.found(state);
      if (!type) {
        this.#carried.set(state.ref, state);
        continue;
      }
      if (this.#elsewhere.holds(state.ref)) {
        this.#elsewhere.keep(state);
        continue;
      }
      const live: LiveActor = { ...type, state };
      this.#actors.set(state.ref, live);
      if (state.version !== type.definition.version) migrations.push(this.#migration(live));
    }
    // Only when all of them are possible, so that a start that is refused does not change the log.
    const tellActors = this.#clockFollowing.setWhileStopped(jumpedMs);
    for (const migrate of migrations) migrate();
    tellActors();
  }

  /**
   * Keeps the actors of some types from acting here until `takeUp`, because another host may hold them: events for them are
   * refused, and their states are kept and saved. Call it before `restore`.
   */
  holdBack(types: readonly string[]): void {
    this.#elsewhere.hold(types);
  }

  /**
   * Ends the actors of some types here, as `holdBack` does. Their effects that wait for a record to be durable stay open.
   * Call it in one go with the end of `EffectDispatcher.endOf`.
   */
  setAside(types: readonly string[]): void {
    this.holdBack(types);
    for (const { state } of [...this.#actors.values()]) {
      if (!this.#elsewhere.holds(state.ref)) continue;
      this.#actors.delete(state.ref);
      this.#elsewhere.keep(state);
    }
    this.#pendingEffects.leaveOpen((actor) => this.#elsewhere.holds(actor));
  }

  /**
   * Lets the actors of some types that were held back or set aside act here (docs/log.md, Actors of another host). They take
   * events when this returns.
   *
   * @param inheritance what the host left that held them last: each actor goes on from it by a record of its own, and those
   * that it does not name do not live any more. Without it, this host held them last, and they go on as its log left them
   * @returns when that is durable, the actors that live again as they were then, for `EffectDispatcher.leftOpen`
   * @throws HF_ACTOR_ADOPTION_CUT a takeover did not get to its end before this process began; HF_ACTOR_ADOPTION a state
   * is not one; HF_MACHINE_VERSION a state is of a version that its definition does not take; HF_ACTOR_UNKNOWN. The log
   * is as before then
   */
  async takeUp(
    types: readonly string[],
    inheritance?: Inheritance,
  ): Promise<readonly Readonly<ActorState>[]> {
    this.#clockFollowing.look();
    const named = new Set(types);
    const isNamed = (ref: string) => named.has(parseActorRef(ref).type);
    const live = inheritance ? this.#adopt(isNamed, inheritance) : this.#goOn(isNamed);
    this.#elsewhere.release(types);
    // As they are before anything else is sent to them: what they ask for from now on is not left open.
    const states = live.map(({ state }) => {
      return { ...state, timers: { ...state.timers }, effects: { ...state.effects } };
    });
    for (const one of live) this.#clockFollowing.catchUp(one);
    await this.#log.whenDurable(this.#seq);
    return states;
  }

  #goOn(isNamed: (ref: string) => boolean): LiveActor[] {
    const takeover = newestTakeover(
      [...this.states(), ...this.#carried.values(), ...this.#elsewhere.states()],
      isNamed,
    );
    if (takeover && !takeover.isComplete) {
      const { host, seq } = takeover;
      throw new KernelError('HF_ACTOR_ADOPTION_CUT', { host, seq });
    }
    const live = [...this.#elsewhere.states()]
      .filter(({ ref, seq }) => isNamed(ref) && seq >= (takeover?.first ?? 0))
      .map((state): LiveActor => ({ ...this.#registered(state.ref), state }));
    const migrations = live
      .filter(({ state, definition }) => state.version !== definition.version)
      .map((one) => this.#migration(one));
    for (const one of live) {
      this.#elsewhere.remove(one.state.ref);
      this.#actors.set(one.state.ref, one);
    }
    for (const migrate of migrations) migrate();
    return live;
  }

  /** Actors that it does not name end here. */
  #adopt(isNamed: (ref: string) => boolean, inheritance: Inheritance): LiveActor[] {
    const states = inheritance.states.filter(({ ref }) => isNamed(ref));
    const now = this.#clock.now();
    const adoptions = adoptionEvents({ ...inheritance, states }, now).map(({ ref, event }) => {
      const type = this.#registered(ref);
      const before = this.#actors.get(ref)?.state ?? this.#elsewhere.get(ref);
      // Only whether it is possible, before the log is changed.
      decideAdoption(type.stepper, type.definition, ref, before, event, now);
      return { ref, event, type, before };
    });
    for (const { state } of [...this.#actors.values()]) {
      if (!isNamed(state.ref)) continue;
      this.#actors.delete(state.ref);
      this.#elsewhere.keep(state);
    }
    const { host, seq } = inheritance;
    const origin: Origin = seq > 0 ? { host, seq } : { host };
    const correlation = newCorrelation();
    return adoptions.map(({ ref, event, type, before }) => {
      const { machine, version } = type.definition;
      const at = this.#time.next();
      const { decision, snapshot } = decideAdoption(type.stepper, type.definition, ref, before, event, at);
      const from = before && { from: before.value };
      const occasion = { at, actor: ref, event, ...from, correlation, origin };
      const record = recordOf(this.#nextSeq(), { machine, version }, occasion, decision);
      const live: LiveActor = { ...type, snapshot, state: applyRecord(before, record) };
      this.#elsewhere.remove(ref);
      this.#actors.set(ref, live);
      // Its effects are left open by the other host: the dispatcher takes them up as those after a crash.
      this.#log.append(record, { durability: 'sync' });
      this.#dirty.add(live.state);
      this.#blobHolders.found(live.state);
      return live;
    });
  }

  #migration(live: LiveActor): () => void {
    const { stepper, definition, state } = live;
    // Only whether it is possible; the record's time is that of the record.
    decideMigration(stepper, definition, state, this.#clock.now());
    return () => {
      const at = this.#time.next();
      const { decision, snapshot } = decideMigration(stepper, definition, state, at);
      const event = { type: MIGRATE, fromVersion: state.version };
      const occasion = { at, actor: state.ref, event, from: state.value, correlation: newCorrelation() };
      const record = recordOf(this.#nextSeq(), definition, occasion, decision);
      applyRecord(state, record);
      live.snapshot = snapshot;
      this.#append(live, record);
    };
  }

  /**
   * Sends an event to an actor: one transition, one record, effects when it is durable. An actor that does not exist
   * yet is started first.
   *
   * @param actor the definition, whose machine says which events there are
   * @param key which actor of that type
   * @throws HF_ACTOR_UNKNOWN nobody registers the type
   * @throws HF_ACTOR_ELSEWHERE another host may hold the actors of that type
   * @throws HF_EVENT_INVALID the event is not plain data, or is called `init`, `migrate` or `adopt`
   * @throws HF_ACTOR_OVERLOADED too many events wait for the log already
   */
  send<M extends AnyStateMachine>(
    actor: ActorDefinition<M>,
    key: string,
    event: EventOf<M>,
    meta?: SendMeta,
  ): Sent {
    return this.deliver(actorRef(actor.type, key), event, meta);
  }

  /**
   * Sends an event by address, unchecked: for routes, outcomes of effects and recovery. Elsewhere use `send`.
   *
   * @throws HF_ACTOR_UNKNOWN, HF_ACTOR_ELSEWHERE, HF_EVENT_INVALID, HF_ACTOR_OVERLOADED as `send`
   */
  deliver(ref: string, event: UncheckedEvent, meta: SendMeta = {}): Sent {
    if (!this.#actors.has(ref)) this.#type(ref);
    const plain = recordable(event);
    if (this.#mailbox.isFree()) {
      const record = this.#transition(ref, plain, meta);
      return { record, decided: async () => record, durable: () => this.#whenDurable(record) };
    }
    const decided = this.#mailbox.put(ref, plain, meta);
    return {
      record: undefined,
      decided: () => decided,
      durable: () => decided.then((record) => this.#whenDurable(record)),
    };
  }

  /** An actor as it is now; undefined when there is none of that key. */
  get<M extends AnyStateMachine>(actor: ActorDefinition<M>, key: string): ActorSnapshot<M> | undefined {
    const state = this.#actors.get(actorRef(actor.type, key))?.state;
    return state && snapshotOf(actor.machine, state);
  }

  /** All actors of one type that live here, in the order in which they were first met. */
  list<M extends AnyStateMachine>(actor: ActorDefinition<M>): ActorSnapshot<M>[] {
    return this.states(actor.type).map((state) => snapshotOf(actor.machine, state));
  }

  /** What the log says of an actor, by its address. The state is live: read it, do not keep it. */
  snapshot(ref: string): Readonly<ActorState> | undefined {
    return this.#actors.get(ref)?.state;
  }

  /** The live states of all actors, or of those of one type. */
  states(type?: string): Readonly<ActorState>[] {
    const states = [...this.#actors.values()].map((live) => live.state);
    return type === undefined ? states : states.filter((state) => parseActorRef(state.ref).type === type);
  }

  /** The states of the actors of some types, whether they live here or were held back or set aside: as this host knows them. */
  knownStates(types: readonly string[]): Readonly<ActorState>[] {
    const named = new Set(types);
    const all = [...[...this.#actors.values()].map(({ state }) => state), ...this.#elsewhere.states()];
    return all.filter(({ ref }) => named.has(parseActorRef(ref).type));
  }

  /** A record in the words of its type of actor; undefined where that has none. Total: any record may come. */
  describe(record: LogRecord): string | undefined {
    try {
      return this.#types.get(parseActorRef(record.actor).type)?.definition.describe?.(record);
    } catch {
      return undefined; // perhaps a record of another release
    }
  }

  /** How long an armed timer still has, milliseconds; however the wall clock was set since. */
  timeLeft(timer: OpenTimer): number {
    return this.#clockFollowing.timeLeft(timer);
  }

  /** Records that the wall clock was set, if it was: an idle system makes no record that would find it. */
  lookAtClock(): void {
    if (this.#mailbox.isFree()) this.#clockFollowing.look();
  }

  /** Whether actors of a type act on this host; false while another host may hold them. */
  actsHere({ type }: Pick<ActorDefinition, 'type'>): boolean {
    return !this.#elsewhere.holds(actorRef(type, 'any'));
  }

  /** False while the log is frozen or has no room: the host then refuses requests instead of queueing them. */
  accepting(): boolean {
    return this.#log.hasRoom();
  }

  /**
   * Resolves when an event that is sent now is decided at once: for senders that can wait, and whose events must not be refused. While the log takes
   * nothing, it does not resolve.
   */
  whenFree(): Promise<void> {
    return this.#mailbox.whenFree();
  }

  get mailboxDepth(): number {
    return this.#mailbox.depth;
  }

  /** The states that changed since the last call, for a snapshot. */
  takeDirty(): ActorState[] {
    const states = [...this.#dirty];
    this.#dirty.clear();
    return states;
  }

  async #whenDurable(record: LogRecord): Promise<LogRecord> {
    await this.#log.whenDurable(record.seq);
    return record;
  }

  /** The actors that stored bodies belong to; their states name those that are still needed. */
  blobHolders(): Readonly<ActorState>[] {
    return this.#blobHolders.all();
  }

  #type(ref: string): ActorType {
    if (this.#elsewhere.holds(ref)) throw new KernelError('HF_ACTOR_ELSEWHERE', { actor: ref });
    return this.#registered(ref);
  }

  #registered(ref: string): ActorType {
    const type = this.#types.get(parseActorRef(ref).type);
    if (!type) throw new KernelError('HF_ACTOR_UNKNOWN', { actor: ref });
    return type;
  }

  #transition(actor: string, event: LogEvent, meta: SendMeta): LogRecord {
    const { correlation = newCorrelation(), cause, origin, outcome, blobs } = meta;
    this.#clockFollowing.look();
    const live = this.#actors.get(actor) ?? this.#start(actor, correlation, cause, origin);
    const { definition, state, stepper } = live;
    live.snapshot ??= stepper.restore(state.value, state.context, state.done);
    const at = this.#time.next();
    const { decision, snapshot } = decide(stepper, state, live.snapshot, event, at, outcome);
    const uid = cause === undefined && outcome === undefined ? this.#senders?.get(correlation) : undefined;
    const occasion = { at, actor, event, from: state.value, correlation, uid, cause, origin, outcome };
    const record = recordOf(this.#nextSeq(), definition, occasion, decision);
    applyRecord(state, record);
    live.snapshot = snapshot;
    return this.#append(live, record, blobs && this.#blobHolders.take(state, blobs));
  }

  #start(actor: string, correlation: string, cause?: number, origin?: Origin): LiveActor {
    const type = this.#type(actor);
    const input = type.definition.input?.(parseActorRef(actor).key);
    const event: LogEvent = input === undefined ? { type: INIT } : { type: INIT, input };
    const at = this.#time.next();
    const { decision, snapshot } = decideInit(type.stepper, event, at);
    const occasion = { at, actor, event, correlation, cause, origin };
    const record = recordOf(this.#nextSeq(), type.definition, occasion, decision);
    this.#forgetDropped(actor);
    const live = { ...type, snapshot, state: applyRecord(undefined, record) };
    this.#actors.set(actor, live);
    this.#append(live, record);
    return live;
  }

  /** An actor of this address that a takeover did not name: the new one is another. */
  #forgetDropped(ref: string): void {
    const dropped = this.#elsewhere.remove(ref);
    if (!dropped) return;
    this.#dirty.delete(dropped);
    this.#blobHolders.forget(dropped);
  }

  #nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  #append({ state }: LiveActor, record: LogRecord, blobs?: Blobs): LogRecord {
    this.#log.append(record, { durability: record.batched ? 'batched' : 'sync', blobs });
    this.#dirty.add(state);
    if (record.failed !== undefined) this.#onFailure(record);
    this.#pendingEffects.add(record);
    return record;
  }
}

/** Event types that only the actor system itself makes. */
const RESERVED: readonly unknown[] = [INIT, MIGRATE, ADOPT];

/** The event as the log will keep it; an invalid one is refused before anything has changed. */
function recordable(event: { readonly type: string }): LogEvent {
  const plain = toPlain(event, 'event') as LogEvent;
  const { type } = plain;
  if (typeof type === 'string' && type !== '' && !RESERVED.includes(type)) return plain;
  throw new KernelError('HF_EVENT_INVALID', {
    path: 'event.type',
    reason: `it is ${String(plain.type) || 'empty'}`,
  });
}
