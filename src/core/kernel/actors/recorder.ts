import { type Clock, newCorrelation, RecordClock } from '../clock.ts';
import { parseActorRef } from '../ids.ts';
import type { Blobs, EventLog } from '../log/event-log.ts';
import { INIT, type LogEvent, type LogRecord, MIGRATE, type Origin } from '../log/record.ts';
import type { ActorTable, ActorType, LiveActor } from './actor-table.ts';
import { type AdoptionEvent, decideAdoption } from './adoption.ts';
import type { SendMeta } from './mailbox.ts';
import type { PendingEffects } from './pending-effects.ts';
import { type ActorState, applyRecord, decide, decideInit, recordOf } from './transition.ts';
import { decideMigration } from './versions.ts';

/** The users whose processes began stories, by correlation id; none where no local process did. */
export interface Senders {
  get(correlation: string): LogRecord['uid'];
}

/** What a recorder works with. */
export interface RecorderParts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly table: ActorTable;
  readonly pendingEffects: PendingEffects;
}

/** An actor that is to be taken over from another host: how it is there, and how this host knew it. */
export interface Adoption extends AdoptionEvent {
  readonly type: ActorType;
  readonly before: ActorState | undefined;
}

/**
 * Carries out transitions: each is decided, recorded with the next number and time, applied to the state of its actor, and given
 * to the log. Its effects wait until that is durable.
 */
export class TransitionRecorder {
  readonly time: RecordClock;
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #table: ActorTable;
  readonly #pendingEffects: PendingEffects;
  readonly #onFailure: (record: LogRecord) => void;
  #senders: Senders | undefined;
  #seq: number;

  /**
   * @param newest seq and time of the newest record: numbers go on from there
   * @param onFailure called with records whose machine threw
   */
  constructor(
    { log, clock, table, pendingEffects }: RecorderParts,
    newest: { seq: number; at: number },
    onFailure: (record: LogRecord) => void,
  ) {
    this.#log = log;
    this.#clock = clock;
    this.#table = table;
    this.#pendingEffects = pendingEffects;
    this.time = new RecordClock(clock, newest.at);
    this.#seq = newest.seq;
    this.#onFailure = onFailure;
  }

  /** The seq of the newest record. */
  get newestSeq(): number {
    return this.#seq;
  }

  /** Has the records of what comes from outside name who sent it. */
  recordSendersOf(senders: Senders): void {
    this.#senders = senders;
  }

  /** Gives an event to an actor; one that does not live yet is started first. */
  transition(actor: string, event: LogEvent, meta: SendMeta): LogRecord {
    const { correlation = newCorrelation(), cause, origin, outcome, blobs } = meta;
    const live = this.#table.live.get(actor) ?? this.#start(actor, correlation, cause, origin);
    const { definition, state, stepper } = live;
    live.snapshot ??= stepper.restore(state.value, state.context, state.done);
    const at = this.time.next();
    const { decision, snapshot } = decide(stepper, state, live.snapshot, event, at, outcome);
    const uid = cause === undefined && outcome === undefined ? this.#senders?.get(correlation) : undefined;
    const occasion = { at, actor, event, from: state.value, correlation, uid, cause, origin, outcome };
    const record = recordOf(this.#nextSeq(), definition, occasion, decision);
    applyRecord(state, record);
    live.snapshot = snapshot;
    return this.#append(live, record, blobs && this.#table.takeBlobs(state, blobs));
  }

  /**
   * Looks whether an actor can be migrated that an older version of its machine left.
   *
   * @returns migrates it
   * @throws HF_MACHINE_VERSION its definition does not take that version
   */
  migration(live: LiveActor): () => void {
    const { stepper, definition, state } = live;
    // Only whether it is possible; the record's time is that of the record.
    decideMigration(stepper, definition, state, this.#clock.now());
    return () => {
      const at = this.time.next();
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
   * Has an actor go on here from the state that another host left. Its effects stay open: the dispatcher takes them up as those
   * after a crash.
   */
  adopt({ ref, event, type, before }: Adoption, origin: Origin, correlation: string): LiveActor {
    const at = this.time.next();
    const { decision, snapshot } = decideAdoption(type.stepper, type.definition, ref, before, event, at);
    const from = before && { from: before.value };
    const occasion = { at, actor: ref, event, ...from, correlation, origin };
    const record = recordOf(this.#nextSeq(), type.definition, occasion, decision);
    const live: LiveActor = { ...type, snapshot, state: applyRecord(before, record) };
    this.#table.takeUp(live);
    this.#log.append(record, { durability: 'sync' });
    this.#table.changed(live.state);
    this.#table.foundBlobs(live.state);
    return live;
  }

  #start(actor: string, correlation: string, cause?: number, origin?: Origin): LiveActor {
    const type = this.#table.actingType(actor);
    const input = type.definition.input?.(parseActorRef(actor).key);
    const event: LogEvent = input === undefined ? { type: INIT } : { type: INIT, input };
    const at = this.time.next();
    const { decision, snapshot } = decideInit(type.stepper, event, at);
    const occasion = { at, actor, event, correlation, cause, origin };
    const record = recordOf(this.#nextSeq(), type.definition, occasion, decision);
    const live = { ...type, snapshot, state: applyRecord(undefined, record) };
    this.#table.begin(live);
    this.#append(live, record);
    return live;
  }

  #nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  #append({ state }: LiveActor, record: LogRecord, blobs?: Blobs): LogRecord {
    this.#log.append(record, { durability: record.batched ? 'batched' : 'sync', blobs });
    this.#table.changed(state);
    if (record.failed !== undefined) this.#onFailure(record);
    this.#pendingEffects.add(record);
    return record;
  }
}
