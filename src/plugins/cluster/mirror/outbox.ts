import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from '../../../core/host/logging/logger.ts';
import { recover } from '../../../core/kernel/actors/recover.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { CHAIN_START } from '../../../core/kernel/log/chain-hash.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import { PORTABLE_FORMAT } from '../../../core/kernel/log/portable/format.ts';
import { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { version } from '../../../core/kernel/version.ts';
import { ClusterError } from '../errors.ts';
import type { NatsLink } from '../nats/link.ts';
import type { LinearStream } from '../nats/stream.ts';
import { StreamConflict } from '../nats/stream-errors.ts';
import { beginMessages, type ChainPlace, nextBatch, stateMessages } from './batch.ts';
import {
  isBegun,
  type LogStreamLimits,
  type LogStreamNames,
  namesOf,
  newestIncarnation,
  openLogStream,
} from './incarnations.ts';
import { Lag, type LagFigures } from './lag.ts';
import { headersOf, leftHeaders, type MirrorMessage } from './message.ts';
import { OrphanedBranches } from './orphans.ts';
import type { ClusterPosition, OrphanedBranch } from './position.ts';
import { type FoundFence, type StreamPlace, standingOf } from './standing.ts';
import { Window } from './window.ts';

/** How long a record waits for others that go with it, unless somebody waits for it. */
const LINGER_MS = 20;
/** So many go at once. */
const ENOUGH_RECORDS = 40;
/** A takeover reads the newest states and at most about so many records. */
const STATES_EVERY = 2_000;
/** Between two attempts, growing with failures in a row. */
const RETRY_MS = { first: 200, most: 5_000 };
/** A stream that was left for the next one within this time is left later. */
const INCARNATION_MS = 5_000;
/** Whoever ends the work of a singleton that another host took over gets so long, until the mirroring goes on. */
const FENCED_MS = 15_000;
/** Of a clean stop, for what is still to be sent. */
const FLUSH_MS = 3_000;

/** The states of actors after a record. */
export interface StatesAt {
  /** The newest record that they have seen. */
  readonly seq: number;
  /** Each as JSON. */
  readonly states: readonly string[];
}

/** Why a stream was left for the next incarnation. */
export interface NewIncarnation {
  readonly incarnation: number;
  readonly reason: string;
  /** Its first record; more than 1 when the local log was pruned. */
  readonly from: number;
}

export interface OutboxOptions {
  readonly link: NatsLink;
  /** Name of the cluster. */
  readonly cluster: string;
  /** Name of this host. */
  readonly host: string;
  readonly dataDir: string;
  /** Closed by whoever opened it, after the stop. */
  readonly position: ClusterPosition;
  readonly log: EventLog;
  /** The public key with which the log is signed. */
  readonly key: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: LogStreamLimits;
  /** Bytes that the body of a message may have: the servers' `max_payload` less the headers. */
  readonly largest: number;
  /** The states of the actors of singletons, as they are now. */
  readonly states: () => StatesAt;
  /** The types of a singleton's actors. */
  readonly typesOf: (singleton: string) => readonly string[];
  /**
   * Another host took a singleton over. The lease has to end before this returns; the mirroring goes on when the promise
   * resolves, which is when no effect is under way any more.
   */
  readonly onFenced: (fence: FoundFence) => void | Promise<void>;
  /** Told when the work has ended: how many records of a singleton no longer count. */
  readonly onOrphaned: (branch: OrphanedBranch) => void;
  readonly onIncarnation: (made: NewIncarnation) => void;
  /** Told once when it cannot go on, e.g. because the stream is full, and with undefined when it can again. */
  readonly onTrouble: (error: Error | undefined) => void;
}

/** Nothing is on the stream yet, as far as is known. */
const NOWHERE: StreamPlace = { streamSeq: 0, seq: 0, hash: CHAIN_START };

interface Waiter extends PromiseWithResolvers<void> {
  readonly seq: number;
}

/** The open stream, and what was handed to it. */
interface Writing {
  readonly stream: LinearStream;
  readonly names: LogStreamNames;
  readonly incarnation: number;
  readonly window: Window;
  /** The last record that was sent. */
  sent: ChainPlace;
  /** The last message that was sent: the next one expects it. */
  last: number;
}

/**
 * Copies the local log to this host's stream, in order (docs/cluster.md, "The log on a stream"). The local log stays the truth: whatever
 * happens to the stream, it is read again from there. Memory holds what is under way and nothing else.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #reader: SqliteReader;
  readonly #orphans: OrphanedBranches;
  readonly #lag: Lag;
  readonly #waiters = new Set<Waiter>();
  /** The newest record that a waiter wants. */
  #urgent = 0;
  #durable: number;
  #acknowledged: StreamPlace = NOWHERE;
  #incarnation = 0;
  #statesAt: StatesAt | undefined;
  /** The record of the newest states on the stream. */
  #statesSent = 0;
  #wake: () => void = () => {};
  #lingerUntil: number | undefined;
  #cancelLinger: () => void = () => {};
  #failures = 0;
  #trouble: Error | undefined;
  #madeAt: number | undefined;
  #stopping: 'no' | 'flush' | 'now' = 'no';
  #running: Promise<void> | undefined;

  constructor(options: OutboxOptions) {
    const { dataDir, clock, log } = options;
    this.#options = options;
    this.#reader = new SqliteReader(dataDir);
    this.#orphans = new OrphanedBranches(options.position, this.#reader);
    this.#durable = log.status().durableSeq;
    this.#lag = new Lag(clock, this.#reader);
  }

  /** Begins to follow the log. It waits for nothing: without NATS it goes on trying. */
  start(): void {
    const { log, link } = this.#options;
    log.onDurable((seq) => {
      this.#durable = seq;
      this.#lag.durable(seq);
      this.#wake();
    });
    log.keepFrom(() => (this.#stopping === 'no' ? this.#acknowledged.seq + 1 : Number.POSITIVE_INFINITY));
    link.onChange((isUp) => isUp && this.#wake());
    const { mirror: known } = this.#options.position.current;
    if (known) {
      const { incarnation, ...place } = known;
      this.#acknowledged = place;
      this.#incarnation = incarnation;
    }
    for (const branch of this.#orphans.endAll(this.#durable))
      if ((branch.records ?? 0) > 0) this.#options.onOrphaned(branch);
    this.#lag.durable(this.#durable);
    this.#running = this.#run();
  }

  /** The newest record that is on the stream, and which one that is. */
  get position(): { readonly incarnation: number; readonly seq: number; readonly hash: string } {
    const { seq, hash } = this.#acknowledged;
    return { incarnation: this.#incarnation, seq, hash };
  }

  /** Why it cannot go on now; undefined while it can. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /** What is not on the stream yet. */
  lag(): LagFigures {
    return this.#lag.figures(this.#acknowledged.seq, this.#durable);
  }

  /** Records that this host made in the name of a singleton that was no longer its own. */
  orphans(): readonly OrphanedBranch[] {
    return this.#orphans.list();
  }

  /** Notes that one was written to a file. @param number of `orphans`, from 1 @throws HF_CLUSTER_BRANCH */
  orphanExported(number: number, at: number): void {
    this.#orphans.exported(number, at);
  }

  /**
   * Resolves when a record is on the stream, which it is sent to at once.
   *
   * @throws HF_CLUSTER_STOPPED it is stopped before that
   */
  mirrored(seq: number): Promise<void> {
    if (seq <= this.#acknowledged.seq) return Promise.resolve();
    if (this.#stopping === 'now') return Promise.reject(new ClusterError('HF_CLUSTER_STOPPED'));
    const waiter = { seq, ...Promise.withResolvers<void>() };
    waiter.promise.catch(() => {}); // whoever waits may be gone when it stops
    this.#waiters.add(waiter);
    this.#urgent = Math.max(this.#urgent, seq);
    this.#wake();
    return waiter.promise;
  }

  /** Sends what is left with the states of the actors, for some seconds at most. */
  async stop(): Promise<void> {
    this.#stopping = 'flush';
    const cancel = this.#options.clock.after(FLUSH_MS, () => this.#stopNow());
    this.#wake();
    await this.#running;
    cancel();
    this.#stopNow();
    this.#reader.close();
  }

  #stopNow(): void {
    this.#stopping = 'now';
    for (const { reject } of this.#waiters) reject(new ClusterError('HF_CLUSTER_STOPPED'));
    this.#waiters.clear();
    this.#wake();
  }

  async #run(): Promise<void> {
    while (this.#stopping !== 'now') {
      try {
        const writing = await this.#open();
        this.#noteTrouble(undefined);
        await this.#write(writing);
        return;
      } catch (error) {
        // A conflict says that somebody else appended: it is read at once.
        if (error instanceof StreamConflict && this.#failures === 0) {
          this.#failures = 1;
          continue;
        }
        if (this.#stopping === 'flush' && !this.#options.link.isUp) return;
        this.#noteTrouble(error instanceof Error ? error : new Error(String(error)));
        await this.#pause();
      }
    }
  }

  #noteTrouble(error: Error | undefined): void {
    const isNew = (isCoded(error) ? error.code : error?.message) !== this.#troubleName();
    this.#trouble = error;
    if (!isNew) return;
    if (error) this.#options.logger.warn({ err: error }, 'cluster.mirror.waits');
    else this.#options.logger.info(this.position, 'cluster.mirror.goes_on');
    this.#options.onTrouble(error);
  }

  #troubleName(): string | undefined {
    return isCoded(this.#trouble) ? this.#trouble.code : this.#trouble?.message;
  }

  /** Waits before the next attempt; a new connection ends it early. */
  async #pause(): Promise<void> {
    const ms = Math.min(RETRY_MS.most, RETRY_MS.first * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    const { clock, link } = this.#options;
    const until = clock.monotonic() + ms;
    const wasUp = link.isUp;
    while (clock.monotonic() < until && this.#stopping !== 'now' && (wasUp || !link.isUp))
      await this.#woken(until - clock.monotonic());
  }

  /** Resolves at the next wake, or after a time, milliseconds. */
  #woken(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = ms === undefined ? () => {} : this.#options.clock.after(ms, () => this.#wake());
      this.#wake = () => {
        cancel();
        this.#wake = () => {};
        resolve();
      };
    });
  }

  /** Opens the stream where it stands, or the next one where it does not go on with the local log. */
  async #open(): Promise<Writing> {
    for (let left: string | undefined; ; ) {
      const writing = await this.#openOne(left);
      if (typeof writing === 'object') return writing;
      left = writing;
      await this.#leave(left);
    }
  }

  /** @returns why it has to be left for the next one, when it has to */
  async #openOne(left: string | undefined): Promise<Writing | string> {
    const { link, cluster, host, key, clock, logger } = this.#options;
    if (!link.isUp)
      throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason: link.problem ?? 'it is down' });
    const newest = await newestIncarnation({ link, cluster, clock, logger }, host);
    if (newest > this.#incarnation || this.#incarnation === 0) {
      // Of a stream that this host did not write down it remembers nothing.
      this.#incarnation = Math.max(newest, 1);
      this.#acknowledged = NOWHERE;
    }
    const incarnation = this.#incarnation;
    const known = this.#acknowledged.streamSeq > 0 ? this.#acknowledged : undefined;
    if (known && newest < incarnation) return 'it was deleted';
    const names = namesOf(cluster, host, incarnation);
    const stream = await this.#stream(names);
    if (!stream) return 'somebody else made it';
    const standing = await standingOf(stream, this.#reader, key, known);
    switch (standing.kind) {
      case 'continues': {
        const { seq, hash } = standing.place;
        this.#noteAcknowledged(standing.place);
        for (const fence of standing.fences) await this.#fenced(fence);
        if (this.#firstKept() > seq + 1) return `the local log was pruned before record ${seq + 1} was sent`;
        return {
          stream,
          names,
          incarnation,
          window: this.#window(),
          sent: { seq, hash },
          last: standing.last,
        };
      }
      case 'empty': {
        const writing = await this.#begin({ stream, names, incarnation }, standing.last);
        if (left !== undefined)
          this.#options.onIncarnation({ incarnation, reason: left, from: writing.sent.seq + 1 });
        return writing;
      }
      case 'behind':
        // Only what a quorum takes proves that records are lost: a server that is cut off knows less than the others.
        await stream.append('', { headers: leftHeaders(incarnation + 1), expectedLast: standing.last });
        return `it lost what stood behind message ${standing.last}`;
      case 'differs':
        return standing.reason;
    }
  }

  /** @returns undefined when it has other settings, and this host has not begun it */
  async #stream(names: LogStreamNames): Promise<LinearStream | undefined> {
    const { link, cluster, host, limits, clock, logger } = this.#options;
    try {
      return await openLogStream(link, names, limits, { clock, logger });
    } catch (error) {
      const isOurs =
        !isCoded(error, 'HF_CLUSTER_STREAM_DIFFERS') ||
        (await isBegun({ link, cluster, clock, logger }, host, this.#incarnation));
      if (isOurs) throw error;
      return undefined;
    }
  }

  /** Makes the next incarnation the one to be opened: it is filled from the local log. */
  async #leave(reason: string): Promise<void> {
    const { clock, logger } = this.#options;
    const until = this.#madeAt === undefined ? 0 : this.#madeAt + INCARNATION_MS;
    while (clock.monotonic() < until && this.#stopping !== 'now')
      await this.#woken(until - clock.monotonic());
    this.#madeAt = clock.monotonic();
    logger.error({ incarnation: this.#incarnation, reason }, 'cluster.mirror.left');
    this.#incarnation += 1;
    this.#acknowledged = NOWHERE;
    this.#options.position.set({ mirror: { incarnation: this.#incarnation, ...NOWHERE } });
  }

  #window(): Window {
    return new Window(() => this.#wake());
  }

  /** The first message of a stream: where the local log begins, and the states before that. */
  async #begin(opened: Pick<Writing, 'stream' | 'names' | 'incarnation'>, last: number): Promise<Writing> {
    const { host, key, clock, largest } = this.#options;
    const from = this.#firstKept();
    const chainStart = from === 1 ? CHAIN_START : (this.#reader.hashBefore(from) ?? CHAIN_START);
    const { states } = from === 1 ? { states: new Map() } : recover(this.#reader, from - 1);
    const now = clock.now();
    const header = {
      ...({
        holdfast: 'log',
        format: PORTABLE_FORMAT,
        runtime: version,
        exportedAt: now,
        machines: {},
      } as const),
      ...{ chainStart, complete: true, host, incarnation: opened.incarnation, key },
      // What was on an earlier stream may have had effects: this one is as good when it has come so far.
      range: { from, to: Math.max(from, this.#reader.lastSeq()) },
      time: { from: now, to: now },
    };
    const sent = { seq: from - 1, hash: chainStart };
    const writing = { ...opened, window: this.#window(), sent, last };
    for (const message of beginMessages(header, states.values(), largest)) this.#append(writing, message);
    this.#statesSent = sent.seq;
    await writing.window.settled();
    writing.window.check();
    return writing;
  }

  /** The record with which the local log begins, behind what a repair could not save. */
  #firstKept(): number {
    const lost = this.#reader.missing().at(-1);
    const first = Math.max(this.#reader.firstSeq(), 1);
    if (!lost || lost.to < first) return first;
    const saved = this.#reader.checkpointFrom(lost.to);
    if (saved === undefined) throw new ClusterError('HF_CLUSTER_LOG_GAP', { from: lost.from, to: lost.to });
    return saved + 1;
  }

  async #fenced(fence: FoundFence): Promise<void> {
    const { onFenced, onOrphaned, typesOf, clock, log, logger } = this.#options;
    const { singleton, by, atSeq, token } = fence;
    if (!this.#orphans.isNew(fence, this.#incarnation)) return;
    logger.warn({ singleton, by, fencing: token, atSeq }, 'cluster.mirror.fenced');
    this.#orphans.begin(fence, this.#incarnation, typesOf(singleton));
    const given = new Promise<void>((resolve) => clock.after(FENCED_MS, resolve));
    await Promise.race([this.#ended(fence, onFenced), given]);
    const upTo = log.lastSeq();
    await Promise.race([log.whenDurable(upTo).catch(() => {}), given]);
    const branch = this.#orphans.end(fence, this.#incarnation, upTo);
    if (branch && (branch.records ?? 0) > 0) onOrphaned(branch);
  }

  async #ended(fence: FoundFence, onFenced: OutboxOptions['onFenced']): Promise<void> {
    try {
      await onFenced(fence);
    } catch (error) {
      this.#options.logger.error({ err: error, singleton: fence.singleton }, 'cluster.mirror.fence_failed');
    }
  }

  /** Sends what comes, until the stop. @throws what the stream says, when nothing is under way any more */
  async #write(writing: Writing): Promise<void> {
    try {
      while (this.#stopping !== 'now') {
        writing.window.check();
        this.#askForStates(writing);
        if (writing.window.hasRoom && this.#isDue(writing)) {
          this.#sendSome(writing);
          await turn();
        } else if (this.#isDone(writing)) return;
        else await this.#woken();
      }
    } catch (error) {
      await writing.window.settled();
      throw error;
    }
  }

  /** The states are those after the newest record: what is sent stops there for them. */
  #askForStates({ sent }: Writing): void {
    if (this.#statesAt) return;
    const isDue =
      this.#stopping === 'flush'
        ? this.#statesSent < this.#durable || this.#statesSent < sent.seq
        : sent.seq - this.#statesSent >= STATES_EVERY && this.#durable - sent.seq < STATES_EVERY;
    if (isDue) this.#statesAt = this.#options.states();
  }

  #isDue(writing: Writing): boolean {
    const { sent, window } = writing;
    // With nothing else under way: so the records before them count for sure.
    if (this.#statesAt && this.#statesAt.seq <= sent.seq) return window.isEmpty;
    const waiting = this.#durable - sent.seq;
    if (waiting <= 0) return false;
    if (waiting >= ENOUGH_RECORDS || this.#urgent > sent.seq || this.#stopping === 'flush') return true;
    const now = this.#options.clock.monotonic();
    if (this.#lingerUntil === undefined) {
      this.#lingerUntil = now + LINGER_MS;
      this.#cancelLinger = this.#options.clock.after(LINGER_MS, () => {
        this.#lingerUntil = Number.NEGATIVE_INFINITY; // a timer may fire before its time
        this.#wake();
      });
    }
    return now >= this.#lingerUntil;
  }

  #isDone({ sent, window }: Writing): boolean {
    return (
      this.#stopping === 'flush' &&
      window.isEmpty &&
      sent.seq >= this.#durable &&
      this.#statesAt === undefined
    );
  }

  #sendSome(writing: Writing): void {
    const { largest } = this.#options;
    const { sent } = writing;
    if (this.#statesAt && this.#statesAt.seq <= sent.seq) {
      const { seq, states } = this.#statesAt;
      this.#statesAt = undefined;
      this.#statesSent = sent.seq;
      if (seq < sent.seq) return; // taken before the stream went on from elsewhere
      for (const message of stateMessages(sent, states, largest)) this.#append(writing, message);
      return;
    }
    this.#cancelLinger();
    this.#lingerUntil = undefined;
    const to = Math.min(this.#durable, this.#statesAt?.seq ?? this.#durable);
    const batch = nextBatch(this.#reader, sent, to, largest);
    if (!batch) return;
    writing.sent = batch.end;
    for (const message of batch.messages) this.#append(writing, message);
  }

  #append(writing: Writing, message: MirrorMessage): void {
    const { stream, names, window, incarnation } = writing;
    const { kind, part, to, hash, body } = message;
    const isLast = part === undefined || part.number === part.of;
    const expectedLast = writing.last;
    writing.last += 1;
    const id = `${this.#options.host}.${incarnation}.${kind}.${to}.${part?.number ?? 1}.${expectedLast}`;
    const subject = kind === 'states' && isLast ? names.states : names.records;
    const appended = stream.append(body, { subject, id, expectedLast, headers: headersOf(message) });
    const stored = appended.then(({ seq }) => {
      if (seq !== expectedLast + 1) throw new StreamConflict(stream.name, expectedLast, seq);
    });
    window.add(stored, body.length, () => {
      this.#failures = 0;
      if (isLast && kind !== 'states') this.#noteAcknowledged({ streamSeq: expectedLast + 1, seq: to, hash });
    });
  }

  #noteAcknowledged(place: StreamPlace): void {
    if (place.streamSeq < this.#acknowledged.streamSeq) return;
    this.#acknowledged = place;
    this.#options.position.set({ mirror: { incarnation: this.#incarnation, ...place } });
    this.#lag.acknowledged(place.seq);
    for (const waiter of this.#waiters) {
      if (waiter.seq > place.seq) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
