import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { type Clock, newCorrelation, RecordClock } from '../clock.ts';
import { type ClockJump, jumpsOf, timeLeft } from '../clock-jumps.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { actorRef, FINGERPRINT_PREFIX, parseActorRef } from '../ids.ts';
import { toPlain } from '../json.ts';
import type { Blobs, EventLog } from '../log/event-log.ts';
import { CLOCK, CLOCK_SET, INIT, type LogEvent, type LogRecord, MIGRATE } from '../log/record.ts';
import type { ActorDefinition, EventOf, UncheckedEvent } from './definition.ts';
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

/** Where an event comes from. */
export interface SendMeta {
  /** The correlation id that it continues; a new one is made when absent. */
  readonly correlation?: string | undefined;
  /** The seq of the record that led to it. */
  readonly cause?: number | undefined;
  /** The effect or timer it is the outcome of. */
  readonly outcome?: string | undefined;
  /** Sealed bodies stored in the record's transaction. */
  readonly blobs?: Blobs | undefined;
}

/** The result of sending an event. */
export interface Sent {
  /** The record, unless the event still waits for the log to have room. */
  readonly record: LogRecord | undefined;
  /** Resolves with the record once it is durable. */
  durable(): Promise<LogRecord>;
}

/** Runs the effects of a record when it is durable (or queued, for `batched` actors). */
export interface EffectRunner {
  run(record: LogRecord): void;
}

/** How many events may wait for the log; further ones are refused. */
const MAILBOX_LIMIT = 10_000;

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

interface Waiting {
  readonly ref: string;
  readonly event: LogEvent;
  readonly meta: SendMeta;
  readonly decided: (record: LogRecord) => void;
  readonly refused: (error: unknown) => void;
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
  readonly #dirty = new Set<ActorState>();
  readonly #blobHolders = new Set<ActorState>();
  readonly #mailbox: Waiting[] = [];
  /** Records whose effects wait for durability, in order. */
  readonly #undurable: LogRecord[] = [];
  readonly #onFailure: (record: LogRecord) => void;
  #runner: EffectRunner | undefined;
  #senders: Senders | undefined;
  readonly #onClockJump: ((jump: ClockJump) => void)[] = [];
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
    log.onDurable((seq) => this.#durable(seq));
    log.onRoom(() => this.#drain());
  }

  /** Registers a type of actor, before any actor is restored or sent to. */
  register(definition: Registered): void {
    this.#types.set(definition.type, { definition, stepper: new MachineStepper(definition.machine) });
  }

  /** Connects the dispatcher that carries effects out. */
  runEffectsWith(runner: EffectRunner): void {
    this.#runner = runner;
  }

  /** Has the records of what comes from outside name who sent it. */
  recordSendersOf(senders: Senders): void {
    this.#senders = senders;
  }

  /** Calls back each time that the wall clock was set, once it is recorded and the actors know it. */
  onClockJump(listener: (jump: ClockJump) => void): void {
    this.#onClockJump.push(listener);
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
      if (JSON.stringify(state).includes(`"${FINGERPRINT_PREFIX}`)) this.#blobHolders.add(state);
      if (!type) {
        this.#carried.set(state.ref, state);
        continue;
      }
      const live: LiveActor = { ...type, state };
      this.#actors.set(state.ref, live);
      if (state.version !== type.definition.version) migrations.push(this.#migration(live));
    }
    // Only when all of them are possible, so that a start that is refused does not change the log.
    const jump = jumpedMs === 0 ? undefined : this.#recordJump(jumpedMs, true);
    for (const migrate of migrations) migrate();
    if (jump) this.#followJump(jump);
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
   * @throws HF_EVENT_INVALID the event is not plain data, or is called `init` or `migrate`
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
   * @throws HF_ACTOR_UNKNOWN, HF_EVENT_INVALID, HF_ACTOR_OVERLOADED as `send`
   */
  deliver(ref: string, event: UncheckedEvent, meta: SendMeta = {}): Sent {
    if (!this.#actors.has(ref)) this.#type(ref);
    const plain = recordable(event);
    if (this.accepting() && this.#mailbox.length === 0) {
      const record = this.#transition(ref, plain, meta);
      return { record, durable: () => this.#whenDurable(record) };
    }
    // An outcome is never refused: its effect would stay open until the next start.
    if (this.#mailbox.length >= MAILBOX_LIMIT && meta.outcome === undefined) {
      throw new KernelError('HF_ACTOR_OVERLOADED', { limit: MAILBOX_LIMIT });
    }
    const decided = new Promise<LogRecord>((resolve, reject) => {
      this.#mailbox.push({ ref, event: plain, meta, decided: resolve, refused: reject });
    });
    decided.catch(() => {}); // the caller of durable() gets the error
    return { record: undefined, durable: () => decided.then((record) => this.#whenDurable(record)) };
  }

  /** An actor as it is now; undefined when there is none of that key. */
  get<M extends AnyStateMachine>(actor: ActorDefinition<M>, key: string): ActorSnapshot<M> | undefined {
    const state = this.#actors.get(actorRef(actor.type, key))?.state;
    return state && snapshotOf(actor.machine, state);
  }

  /** All actors of one type, in the order in which they were first met. */
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
    return timeLeft(timer, this.#time.recorded(), jumpsOf(this.snapshot(CLOCK.actor)));
  }

  /** Records that the wall clock was set, if it was: an idle system makes no record that would find it. */
  lookAtClock(): void {
    if (this.accepting() && this.#mailbox.length === 0) this.#findJump();
  }

  /** False while the log is frozen or has no room: the host then refuses requests instead of queueing them. */
  accepting(): boolean {
    return this.#log.hasRoom();
  }

  get mailboxDepth(): number {
    return this.#mailbox.length;
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
    return [...this.#blobHolders];
  }

  #type(ref: string): ActorType {
    const type = this.#types.get(parseActorRef(ref).type);
    if (!type) throw new KernelError('HF_ACTOR_UNKNOWN', { actor: ref });
    return type;
  }

  #transition(actor: string, event: LogEvent, meta: SendMeta): LogRecord {
    const { correlation = newCorrelation(), cause, outcome, blobs } = meta;
    this.#findJump();
    const live = this.#actors.get(actor) ?? this.#start(actor, correlation, cause);
    const { definition, state, stepper } = live;
    live.snapshot ??= stepper.restore(state.value, state.context, state.done);
    const at = this.#time.next();
    const { decision, snapshot } = decide(stepper, state, live.snapshot, event, at, outcome);
    const uid = cause === undefined && outcome === undefined ? this.#senders?.get(correlation) : undefined;
    const occasion = { at, actor, event, from: state.value, correlation, uid, cause, outcome };
    const record = recordOf(this.#nextSeq(), definition, occasion, decision);
    applyRecord(state, record);
    live.snapshot = snapshot;
    return this.#append(live, record, blobs && namedIn(state, blobs));
  }

  #start(actor: string, correlation: string, cause?: number): LiveActor {
    const type = this.#type(actor);
    const input = type.definition.input?.(parseActorRef(actor).key);
    const event: LogEvent = input === undefined ? { type: INIT } : { type: INIT, input };
    const at = this.#time.next();
    const { decision, snapshot } = decideInit(type.stepper, event, at);
    const occasion = { at, actor, event, correlation, cause };
    const record = recordOf(this.#nextSeq(), type.definition, occasion, decision);
    const live = { ...type, snapshot, state: applyRecord(undefined, record) };
    this.#actors.set(actor, live);
    this.#append(live, record);
    return live;
  }

  #nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  #append({ state }: LiveActor, record: LogRecord, blobs?: Blobs): LogRecord {
    this.#log.append(record, { durability: record.batched ? 'batched' : 'sync', blobs });
    this.#dirty.add(state);
    if (blobs) this.#blobHolders.add(state);
    if (record.failed !== undefined) this.#onFailure(record);
    if (record.effects.length === 0) return record;
    if (record.batched) this.#runner?.run(record);
    else this.#undurable.push(record);
    return record;
  }

  #durable(seq: number): void {
    let next = this.#undurable[0];
    while (next && next.seq <= seq) {
      this.#undurable.shift();
      this.#runner?.run(next);
      next = this.#undurable[0];
    }
  }

  #drain(): void {
    while (this.#mailbox.length > 0 && this.accepting()) {
      const waiting = this.#mailbox.shift();
      if (!waiting) return;
      try {
        waiting.decided(this.#transition(waiting.ref, waiting.event, waiting.meta));
      } catch (error) {
        waiting.refused(error);
      }
    }
  }

  #findJump(): void {
    if (!this.#types.has(CLOCK.type)) return;
    const jumpedMs = this.#time.look();
    if (jumpedMs !== 0) this.#followJump(this.#recordJump(jumpedMs, false));
  }

  #recordJump(byMs: number, whileStopped: boolean): LogRecord {
    this.#time.jump();
    const event = { type: CLOCK.event, byMs, after: this.#seq, whileStopped };
    return this.#transition(CLOCK.actor, event, {});
  }

  /** Has every actor that compares times take those that it remembers by the clock as it is set now. */
  #followJump({ seq, at, event, correlation }: LogRecord): void {
    const jump: ClockJump = { byMs: Number(event.byMs), after: Number(event.after) };
    for (const [ref, { definition, state }] of this.#actors) {
      if (state.done || !definition.machine.events.includes(CLOCK_SET)) continue;
      this.#transition(ref, { type: CLOCK_SET, at, byMs: jump.byMs }, { correlation, cause: seq });
    }
    for (const listener of this.#onClockJump) listener(jump);
  }
}

/** The event as the log will keep it; an invalid one is refused before anything has changed. */
function recordable(event: { readonly type: string }): LogEvent {
  const plain = toPlain(event, 'event') as LogEvent;
  const { type } = plain;
  if (typeof type === 'string' && type !== '' && type !== INIT && type !== MIGRATE) return plain;
  throw new KernelError('HF_EVENT_INVALID', {
    path: 'event.type',
    reason: `it is ${String(plain.type) || 'empty'}`,
  });
}

/** The bodies whose keys the state or its open effects hold; nobody could ever read the others. */
function namedIn(state: ActorState, blobs: Blobs): Blobs | undefined {
  const text = JSON.stringify(state);
  const named = [...blobs].filter(([key]) => text.includes(`"${key}"`));
  return named.length > 0 ? new Map(named) : undefined;
}
