import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { NatsLink } from './link.ts';
import { ReadWindow } from './read-window.ts';
import { StreamGap, StreamGone, StreamRewound } from './stream-errors.ts';
import type { Looked, StreamEnds, StreamMessage } from './stream-message.ts';

export interface FollowOptions {
  /**
   * The stream is not what it was: StreamGap, StreamGone, or a StreamRewound that is certain. Nothing comes any more.
   */
  readonly onFault?: (error: StreamGap | StreamGone | StreamRewound) => void;
  /** Called when everything that stands on the stream has been handed on, after each look. */
  readonly onCaughtUp?: (seq: number) => void;
  /** Called for each message that is there, a forged one too, before it is handed on. */
  readonly onFound?: (seq: number) => void;
  /** Called with the number that comes next when a look failed. */
  readonly onLater?: (next: number) => void;
  /** Between two looks without a hint; 2,000 unless set. Milliseconds. */
  readonly pollMs?: number;
}

/** What of a stream is needed to follow it. */
interface Followed {
  readonly name: string;
  readonly subjects: readonly string[];
  last(): Promise<StreamEnds>;
  look(seq: number): Promise<Looked | undefined>;
}

interface Following extends FollowOptions {
  readonly from: number;
  readonly handler: (message: StreamMessage) => void | Promise<void>;
}

const POLL_MS = 2_000;
/** A hint comes before its message is stored on most servers: looks after it, milliseconds each. */
const HINTED_MS = [1, 2, 4, 8, 16, 32, 64, 125, 250, 500];
/** Until a handler that has thrown gets its message again. */
const AGAIN_MS = 500;

/** See `LinearStream.follow`. */
export class Follower {
  readonly #stream: Followed;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #following: Following;
  readonly #ends: (() => void)[];
  #next: number;
  #isEnded = false;
  #isLooking = false;
  /** A hint has come since the last look began. */
  #isHinted = false;
  #cancel: () => void = () => {};
  #done: Promise<void> = Promise.resolve();

  constructor(
    stream: Followed,
    link: NatsLink,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
    following: Following,
  ) {
    this.#stream = stream;
    this.#clock = clock;
    this.#logger = logger;
    this.#following = following;
    this.#next = following.from;
    this.#ends = [
      ...stream.subjects.map((subject) => link.listen(subject, () => this.#look(true))),
      link.onChange((isUp) => isUp && this.#look(true)),
    ];
    this.#look(false);
  }

  /** The number that comes next. */
  get next(): number {
    return this.#next;
  }

  /** Ends it. When it resolves, the handler is not under way any more; do not await it within the handler. */
  async end(): Promise<void> {
    this.#stop();
    await this.#done;
  }

  #stop(): void {
    this.#isEnded = true;
    this.#cancel();
    for (const end of this.#ends) end();
  }

  /** Looks now: somebody else says that there is something new. */
  look(): void {
    this.#look(true);
  }

  #look(isHinted: boolean): void {
    if (isHinted) this.#isHinted = true;
    if (this.#isLooking || this.#isEnded) return;
    this.#isLooking = true;
    this.#cancel();
    this.#done = this.#run().finally(() => {
      this.#isLooking = false;
      if (this.#isEnded) return;
      if (this.#isHinted) this.#look(false);
      else this.#cancel = this.#clock.after(this.#following.pollMs ?? POLL_MS, () => this.#look(false));
    });
  }

  async #run(): Promise<void> {
    try {
      const isHinted = this.#isHinted;
      this.#isHinted = false;
      let found = await this.#takeAll();
      for (const ms of isHinted ? HINTED_MS : []) {
        if (found > 0 || this.#isHinted || this.#isEnded) break;
        await this.#pause(ms);
        found = await this.#takeAll();
      }
      if (found === 0 && !this.#isHinted && !this.#isEnded) await this.#compare();
      if (!this.#isEnded) this.#following.onCaughtUp?.(this.#next - 1);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Takes what is there. @returns how many */
  async #takeAll(): Promise<number> {
    let taken = 0;
    const window = new ReadWindow(this.#clock);
    while (!this.#isEnded) {
      const asked = Array.from({ length: window.size }, (_, i) =>
        window.asked(this.#stream.look(this.#next + i)),
      );
      for (const look of asked) look.catch(() => {});
      for (const look of asked) {
        const there = await look;
        if (there === undefined || this.#isEnded) return taken;
        this.#following.onFound?.(this.#next);
        window.came(there.bytes);
        if (there.message) await this.#hand(there.message);
        if (this.#isEnded) return taken;
        this.#next += 1;
        taken += 1;
      }
    }
    return taken;
  }

  async #hand(message: StreamMessage): Promise<void> {
    while (!this.#isEnded) {
      try {
        await this.#following.handler(message);
        return;
      } catch (error) {
        this.#logger.error(
          { stream: this.#stream.name, seq: message.seq, err: error },
          'cluster.stream.handler',
        );
        await this.#pause(AGAIN_MS);
      }
    }
  }

  /** Nothing new was found: is that so, or is a message missing, or the stream another one? */
  async #compare(): Promise<void> {
    const next = this.#next;
    const { seq, firstSeq } = await this.#stream.last();
    if (seq < next || (await this.#stream.look(next)) !== undefined) return;
    throw new StreamGap(this.#stream.name, next, firstSeq, seq);
  }

  #failed(error: unknown): void {
    const isFault =
      error instanceof StreamGap ||
      error instanceof StreamGone ||
      (error instanceof StreamRewound && error.isCertain);
    if (!isFault) {
      this.#logger.debug({ stream: this.#stream.name, err: error }, 'cluster.stream.later');
      this.#following.onLater?.(this.#next);
      return;
    }
    this.#logger.error({ stream: this.#stream.name, err: error }, 'cluster.stream.fault');
    this.#stop();
    this.#following.onFault?.(error);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }
}
