import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { CERTAIN_MS } from '../durations.ts';
import type { NatsLink } from '../nats/link.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamGap, StreamGone, StreamRewound } from '../nats/stream-errors.ts';
import type { StreamMessage } from '../nats/stream-message.ts';
import type { StreamSettings } from '../nats/stream-settings.ts';
import { Trouble } from '../nats/trouble.ts';
import type { Outcome, SharedOrder } from './shared-order.ts';

/** Between two attempts to open the stream. */
const AGAIN_MS = 500;
const POLL_MS = 2_000;
/** Between two looks whether the newest message is still what it was. */
const COMPARE_MS = 2_000;
const LOOKS_AT_ONCE = 64;
/** It reads what is there within so long, unless there is too much. */
const LATE_MS = 1_000;

export interface SharedReaderOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: StreamSettings;
  readonly order: SharedOrder;
  /** The next message waits for it; what throws is called again. */
  readonly onOutcome: (outcome: Outcome, message: StreamMessage) => Promise<void>;
  /** Places that this host never saw and that are not on the stream any more. */
  readonly onMissed: (first: number, last: number) => void;
  /** The stream is another one, or has lost its end, back to a place: what stood there may be known to some hosts only. */
  readonly onRewound: (from: number, to: number) => void;
  /** This host has read everything that stands on the stream. */
  readonly onCaughtUp: () => void;
  /** Between two looks without a hint; 2,000 unless set. Milliseconds. */
  readonly pollMs?: number | undefined;
}

/**
 * Reads the stream of messages to every host in order, from where this host was. Whenever it opens the stream, comes back to NATS, and every two
 * seconds, it compares the newest message that it knows with what stands in its place, because a stream can be deleted, made anew
 * or set back between two looks.
 */
export class SharedReader {
  readonly #options: SharedReaderOptions;
  readonly #trouble: Trouble;
  #stream: LinearStream | undefined;
  #poke: () => void = () => {};
  #endFollowing: () => void = () => {};
  #suspectSince: number | undefined;
  #comparedAt = 0;
  /** Since when it has found one message behind the other, and not come to the end of the stream. */
  #unreadSince: number | undefined;
  #taken: { readonly seq: number; readonly outcome: Outcome } | undefined;
  #isStopped = false;
  #done: Promise<void> = Promise.resolve();
  #endListening: () => void = () => {};

  constructor(options: SharedReaderOptions) {
    this.#options = options;
    this.#trouble = new Trouble(options.logger, 'cluster.messages.later');
  }

  /** Why the stream cannot be read, where a person has to fix it. */
  get trouble(): Error | undefined {
    return this.#trouble.error;
  }

  /** For how long messages have stood on the stream that this host has not read, milliseconds; undefined while it reads them at once. */
  get behindMs(): number | undefined {
    if (this.#unreadSince === undefined) return undefined;
    const behindMs = this.#options.clock.monotonic() - this.#unreadSince;
    return behindMs > LATE_MS ? behindMs : undefined;
  }

  /** The stream, while this host knows that it is the one that it has read. */
  get stream(): LinearStream | undefined {
    return this.#stream;
  }

  start(): void {
    this.#endListening = this.#options.link.onChange((isUp) => {
      if (isUp) this.#endFollowing();
    });
    this.#done = this.#run();
  }

  /** Resolves when nothing is delivered any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endListening();
    this.#endFollowing();
    await this.#done;
  }

  /** Looks at once. */
  poke(): void {
    this.#poke();
  }

  /** Compares the stream at once with what this host knows of it: somebody knows it otherwise. */
  doubt(): void {
    this.#comparedAt = Number.NEGATIVE_INFINITY;
    this.#poke();
  }

  async #run(): Promise<void> {
    const { link, clock, logger, settings } = this.#options;
    while (!this.#isStopped) {
      try {
        const stream = await LinearStream.open(link, settings, { clock, logger });
        this.#trouble.note();
        if (await this.#isReady(stream)) await this.#follow(stream);
        else await this.#pause();
      } catch (error) {
        this.#trouble.note(error);
        await this.#pause();
      }
    }
  }

  /** Compares the stream with what this host knows of it. @returns whether it is certain where to go on */
  async #isReady(stream: LinearStream): Promise<boolean> {
    const { order } = this.#options;
    if (order.incarnation === '') order.begin(stream.incarnation);
    const { seq: last, firstSeq } = await stream.last();
    const isOther = stream.incarnation !== order.incarnation;
    const isOlder = isOther && Date.parse(stream.incarnation) < Date.parse(order.incarnation);
    if ((isOlder || (!isOther && last < order.seq)) && !this.#isCertain(stream)) return false;
    this.#suspectSince = undefined;
    if (isOther) this.#rewind(stream.incarnation, 0);
    else {
      const different = await this.#firstDifferent(stream, last);
      if (different !== undefined) this.#rewind(stream.incarnation, different - 1);
      else if (last < order.seq) this.#rewind(stream.incarnation, last);
    }
    if (firstSeq > order.seq + 1) this.#miss(firstSeq - 1);
    return true;
  }

  /** Whether a doubt has lasted for longer than a server that is cut off would answer. */
  #isCertain({ replicas }: LinearStream): boolean {
    const now = this.#options.clock.monotonic();
    this.#suspectSince ??= now;
    // A single server is never cut off from others.
    return replicas === 1 || now - this.#suspectSince >= CERTAIN_MS;
  }

  #rewind(incarnation: string, seq: number): void {
    const { order, logger, onRewound } = this.#options;
    const from = order.seq;
    order.rewind(incarnation, seq);
    logger.warn({ from, to: seq, epoch: order.epoch }, 'cluster.messages.rewound');
    onRewound(from, seq);
  }

  #miss(last: number): void {
    const { order, logger, onMissed } = this.#options;
    const first = order.seq + 1;
    order.skipTo(last);
    logger.error({ first, last }, 'cluster.messages.missed');
    onMissed(first, last);
  }

  /** @returns the first place that holds something else than this host saw there */
  async #firstDifferent(stream: LinearStream, last: number): Promise<number | undefined> {
    const { order } = this.#options;
    const isOther = async (seq: number) => {
      const message = (await stream.look(seq))?.message;
      return message !== undefined && order.matches(message) === false;
    };
    const newest = Math.min(order.seq, last);
    if (newest === 0) return undefined;
    if (last >= order.seq && !(await isOther(newest))) return undefined;
    for (let seq = Math.max(1, order.remembered.first); seq <= newest; seq += LOOKS_AT_ONCE) {
      const size = Math.min(LOOKS_AT_ONCE, newest - seq + 1);
      const looks = await Promise.all(Array.from({ length: size }, (_, i) => isOther(seq + i)));
      const index = looks.indexOf(true);
      if (index >= 0) return seq + index;
    }
    return undefined;
  }

  /** Resolves when the stream has to be compared anew. */
  async #follow(stream: LinearStream): Promise<void> {
    const { order, clock, onCaughtUp, pollMs = POLL_MS } = this.#options;
    const ended = Promise.withResolvers<void>();
    this.#endFollowing = ended.resolve;
    this.#comparedAt = clock.monotonic();
    const follower = stream.follow(order.seq + 1, (message) => this.#take(message), {
      pollMs,
      onFault: (error) => {
        if (error instanceof StreamGap && error.seq >= error.firstSeq) this.#miss(error.seq);
        if (error instanceof StreamRewound) this.#suspectSince ??= 0;
        ended.resolve();
      },
      onFound: () => {
        this.#unreadSince ??= clock.monotonic();
      },
      onLater: (next) => {
        // As far as is known there was no other: e.g. the stream has lost its leader.
        if (stream.seen < next) this.#unreadSince = undefined;
      },
      onCaughtUp: () => {
        this.#unreadSince = undefined;
        onCaughtUp();
        void this.#compare(stream);
      },
    });
    this.#poke = () => follower.look();
    this.#stream = stream;
    if (this.#isStopped) ended.resolve();
    await ended.promise;
    this.#stream = undefined;
    this.#poke = () => {};
    await follower.end();
  }

  /** The follower looks at the end of the stream only while nobody says that there is something new. */
  async #compare(stream: LinearStream): Promise<void> {
    const { order, clock } = this.#options;
    if (clock.monotonic() - this.#comparedAt < COMPARE_MS) return;
    this.#comparedAt = clock.monotonic();
    if (!(await this.#isSame(stream, order.seq))) this.#endFollowing();
  }

  async #isSame(stream: LinearStream, seq: number): Promise<boolean> {
    const { order } = this.#options;
    try {
      if ((await stream.last()).seq < seq) return false;
      const newest = seq === 0 ? undefined : (await stream.look(seq))?.message;
      return !newest || order.matches(newest) !== false;
    } catch (error) {
      return !(error instanceof StreamGone || error instanceof StreamRewound);
    }
  }

  async #take(message: StreamMessage): Promise<void> {
    const { order, onOutcome } = this.#options;
    // The one before may have been given up.
    if (this.#isStopped) return;
    if (message.seq !== this.#taken?.seq) {
      if (message.seq <= order.seq) return;
      // Those between were forged.
      if (message.seq > order.seq + 1) order.skipTo(message.seq - 1);
      this.#taken = undefined;
    }
    this.#taken ??= { seq: message.seq, outcome: order.take(message) };
    await onOutcome(this.#taken.outcome, message);
    this.#taken = undefined;
  }

  #pause(): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      const cancel = clock.after(AGAIN_MS, resolve);
      this.#endFollowing = () => {
        cancel();
        resolve();
      };
    });
  }
}
