import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import type { Takeover } from '../../../machines/cluster/singleton.ts';
import { ClusterError } from '../errors.ts';
import { StreamConflict } from '../nats/stream-errors.ts';
import { Fences, type OfSingleton } from './fences.ts';
import { Lag, type LagFigures } from './lag.ts';
import type { OrphanedBranch } from './orphans.ts';
import type { OutboxOptions } from './outbox-options.ts';
import { OwnStream } from './own-stream.ts';
import { Sender, type Wanted } from './sender.ts';

/** Between two attempts, growing with failures in a row. */
const RETRY_MS = { first: 200, most: 5_000 };
/** Of a clean stop, for what is still to be sent. */
const FLUSH_MS = 3_000;

/** How far the log is on the stream. */
export interface MirrorPlace {
  readonly incarnation: number;
  readonly seq: number;
  readonly hash: string;
  /** The message with which the newest states of actors end that were read on it; undefined while there are none. */
  readonly states: number | undefined;
}

interface Waiter extends PromiseWithResolvers<void> {
  readonly seq: number;
}

/**
 * Copies the local log to this host's stream, in order (docs/cluster.md, "The log on a stream"). The local log stays the truth: whatever
 * happens to the stream, it is read again from there. Memory holds what is under way and nothing else.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #reader: SqliteReader;
  readonly #stream: OwnStream;
  readonly #sender: Sender;
  readonly #fences: Fences;
  readonly #lag: Lag;
  readonly #waiters = new Set<Waiter>();
  /** The newest record that a waiter wants. */
  #urgent = 0;
  #durable: number;
  #wake: () => void = () => {};
  #failures = 0;
  #trouble: Error | undefined;
  #stopping: Wanted['stopping'] = 'no';
  #running: Promise<void> | undefined;
  /** What was not on the stream at the stop. */
  #left: LagFigures | undefined;

  constructor(options: OutboxOptions) {
    const { dataDir, clock, log } = options;
    const reader = new SqliteReader(dataDir);
    this.#options = options;
    this.#reader = reader;
    this.#durable = log.status().durableSeq;
    this.#lag = new Lag(clock, reader);
    this.#fences = new Fences({ ...options, reader });
    this.#stream = new OwnStream({
      ...{ ...options, reader },
      fences: this.#fences.kept,
      onFence: (fence) => this.#fences.meet(fence, this.#stream.incarnation),
      onPlace: ({ seq }) => this.#confirmed(seq),
      onStands: () => {
        this.#failures = 0;
      },
      onChange: () => this.#wake(),
      wait: (ms) => this.#wait(ms),
    });
    this.#sender = new Sender({
      ...{ ...options, reader },
      wanted: () => ({ durable: this.#durable, urgent: this.#urgent, stopping: this.#stopping }),
      woken: () => this.#woken(),
      wake: () => this.#wake(),
      onPlaced: (fence, stands) => this.#fences.kept.placed(fence, stands),
    });
  }

  /** Begins to follow the log. It waits for nothing: without NATS it goes on trying. */
  start(): void {
    const { log, link } = this.#options;
    log.onDurable((seq) => {
      this.#durable = seq;
      this.#lag.durable(seq);
      this.#wake();
    });
    log.keepFrom(() => (this.#stopping === 'no' ? this.position.seq + 1 : Number.POSITIVE_INFINITY));
    link.onChange((isUp) => isUp && this.#wake());
    this.#fences.start(this.#durable);
    this.#lag.durable(this.#durable);
    this.#running = this.#run();
  }

  /** The newest record that was read on the stream, and which one that is. */
  get position(): MirrorPlace {
    const { incarnation, place, states } = this.#stream;
    return { incarnation, seq: place.seq, hash: place.hash, states: states?.streamSeq };
  }

  /** Why it cannot go on now; undefined while it can. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /** What is not on the stream yet; after the stop, what was not by then. */
  lag(): LagFigures {
    return this.#left ?? this.#lag.figures(this.position.seq, this.#durable);
  }

  /** Records that this host made in the name of a singleton that was no longer its own. */
  orphans(): readonly OrphanedBranch[] {
    return this.#fences.orphans();
  }

  /** Notes that one was written to a file. @param number of `orphans`, from 1 @throws HF_CLUSTER_BRANCH */
  orphanExported(number: number, at: number): Promise<void> {
    return this.#fences.exported(number, at);
  }

  /**
   * Another host took a singleton over, and says so: its fence is placed here again where the stream lost it.
   *
   * @returns whether what follows is noted; else it has to be said again
   */
  async takenOver(takeover: Takeover & OfSingleton): Promise<boolean> {
    if (!this.#running || this.#stopping !== 'no') return false;
    const isNoted = await this.#fences.takenOver(takeover, Math.max(1, this.#stream.incarnation));
    this.#wake();
    return isNoted;
  }

  /**
   * Resolves when a record was read on the stream, which it is sent to at once.
   *
   * @throws HF_CLUSTER_STOPPED it is stopped before that
   */
  mirrored(seq: number): Promise<void> {
    if (seq <= this.position.seq) return Promise.resolve();
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
    this.#left = this.lag();
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
        await this.#fences.tell();
        const writable = await this.#stream.open();
        this.#noteTrouble(undefined);
        await this.#sender.send(writable);
        return;
      } catch (error) {
        this.#stream.failed(error);
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
    const { link } = this.#options;
    const wasUp = link.isUp;
    await this.#wait(ms, () => wasUp || !link.isUp);
  }

  /** Waits for so long, milliseconds, or until the stop. @param goesOn looked at when something changed */
  async #wait(ms: number, goesOn = () => true): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    while (clock.monotonic() < until && this.#stopping !== 'now' && goesOn())
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

  #confirmed(seq: number): void {
    this.#lag.acknowledged(seq);
    for (const waiter of this.#waiters) {
      if (waiter.seq > seq) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
