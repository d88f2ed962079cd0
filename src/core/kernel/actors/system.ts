import type { AnyStateMachine } from 'xstate';
import type { Clock } from '../clock.ts';
import type { ClockJump } from '../clock-jumps.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { actorRef, parseActorRef } from '../ids.ts';
import { toPlain } from '../json.ts';
import type { EventLog } from '../log/event-log.ts';
import { ADOPT, CLOCK, INIT, type LogEvent, type LogRecord, MIGRATE } from '../log/record.ts';
import { ActorTable } from './actor-table.ts';
import type { Inheritance } from './adoption.ts';
import { ClockFollowing } from './clock-following.ts';
import type { ActorDefinition, EventOf, UncheckedEvent } from './definition.ts';
import { Mailbox, type SendMeta } from './mailbox.ts';
import { type EffectRunner, PendingEffects } from './pending-effects.ts';
import { type Senders, TransitionRecorder } from './recorder.ts';
import type { Recovered } from './recover.ts';
import { adopt, goOn } from './take-up.ts';
import { type ActorSnapshot, type ActorState, type OpenTimer, snapshotOf } from './transition.ts';
import type { Registered } from './versions.ts';

/** The result of sending an event. */
export interface Sent {
  /** The record, unless the event still waits for the log to have room. */
  readonly record: LogRecord | undefined;
  /** Resolves with the record once it was decided: its effects and its durability are still to come. */
  decided(): Promise<LogRecord>;
  /** Resolves with the record once it is durable. */
  durable(): Promise<LogRecord>;
}

/**
 * The actors of one runtime. A transition is pure and runs to its end at once, so one mailbox serves all actors in order;
 * it fills only while the log has no room.
 */
export class ActorSystem {
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #table = new ActorTable();
  readonly #recorder: TransitionRecorder;
  readonly #mailbox: Mailbox;
  readonly #clockFollowing: ClockFollowing;
  readonly #pendingEffects = new PendingEffects();

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
    const parts = { log, clock, table: this.#table, pendingEffects: this.#pendingEffects };
    const recorder = new TransitionRecorder(parts, newest, onFailure);
    this.#recorder = recorder;
    const transition = this.#transition.bind(this);
    this.#mailbox = new Mailbox(() => log.hasRoom(), transition);
    this.#clockFollowing = new ClockFollowing(recorder.time, {
      live: this.#table.live,
      isRecording: () => this.#table.isRegistered(CLOCK.type),
      newestSeq: () => recorder.newestSeq,
      transition,
    });
    log.onDurable((seq) => this.#pendingEffects.durable(seq));
    log.onRoom(() => this.#mailbox.drain());
  }

  /** Registers a type of actor, before any actor is restored or sent to. */
  register(definition: Registered): void {
    this.#table.register(definition);
  }

  /** Connects the dispatcher that carries effects out. */
  runEffectsWith(runner: EffectRunner): void {
    this.#pendingEffects.runWith(runner);
  }

  /** Has the records of what comes from outside name who sent it. */
  recordSendersOf(senders: Senders): void {
    this.#recorder.recordSendersOf(senders);
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
      const live = this.#table.recovered(state, state.seq <= savedSeq);
      if (live && state.version !== live.definition.version) migrations.push(this.#recorder.migration(live));
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
    this.#table.holdBack(types);
  }

  /**
   * Ends the actors of some types here, as `holdBack` does. Their effects that wait for a record to be durable stay open.
   * Call it in one go with the end of `EffectDispatcher.endOf`.
   */
  setAside(types: readonly string[]): void {
    this.holdBack(types);
    const isHeldBack = (ref: string) => this.#table.isHeldBack(ref);
    this.#table.setAside(isHeldBack);
    this.#pendingEffects.leaveOpen(isHeldBack);
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
    const parts = { table: this.#table, recorder: this.#recorder, clock: this.#clock };
    const live = inheritance ? adopt(parts, isNamed, inheritance) : goOn(parts, isNamed);
    this.#table.release(types);
    // As they are before anything else is sent to them: what they ask for from now on is not left open.
    const states = live.map(({ state }) => {
      return { ...state, timers: { ...state.timers }, effects: { ...state.effects } };
    });
    for (const one of live) this.#clockFollowing.catchUp(one);
    await this.#log.whenDurable(this.#recorder.newestSeq);
    return states;
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
    if (!this.#table.live.has(ref)) this.#table.actingType(ref);
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
    const state = this.#table.live.get(actorRef(actor.type, key))?.state;
    return state && snapshotOf(actor.machine, state);
  }

  /** All actors of one type that live here, in the order in which they were first met. */
  list<M extends AnyStateMachine>(actor: ActorDefinition<M>): ActorSnapshot<M>[] {
    return this.states(actor.type).map((state) => snapshotOf(actor.machine, state));
  }

  /** What the log says of an actor, by its address. The state is live: read it, do not keep it. */
  snapshot(ref: string): Readonly<ActorState> | undefined {
    return this.#table.live.get(ref)?.state;
  }

  /** The live states of all actors, or of those of one type. */
  states(type?: string): Readonly<ActorState>[] {
    return this.#table.states(type);
  }

  /** The states of the actors of some types, whether they live here or were held back or set aside: as this host knows them. */
  knownStates(types: readonly string[]): Readonly<ActorState>[] {
    const named = new Set(types);
    const all = [...this.#table.states(), ...this.#table.asideStates()];
    return all.filter(({ ref }) => named.has(parseActorRef(ref).type));
  }

  /** A record in the words of its type of actor; undefined where that has none. Total: any record may come. */
  describe(record: LogRecord): string | undefined {
    return this.#table.describe(record);
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
    return !this.#table.isHeldBack(actorRef(type, 'any'));
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
    return this.#table.takeDirty();
  }

  /** The actors that stored bodies belong to; their states name those that are still needed. */
  blobHolders(): Readonly<ActorState>[] {
    return this.#table.blobHolders();
  }

  async #whenDurable(record: LogRecord): Promise<LogRecord> {
    await this.#log.whenDurable(record.seq);
    return record;
  }

  #transition(actor: string, event: LogEvent, meta: SendMeta): LogRecord {
    this.#clockFollowing.look();
    return this.#recorder.transition(actor, event, meta);
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
