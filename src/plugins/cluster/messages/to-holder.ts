import type { HostMessage } from '../../../core/contracts/cluster.ts';
import { type Clock, newCorrelation } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import { LARGEST_MESSAGE } from '../nats/body.ts';
import { together } from './outgoing.ts';

const MOST_WAITING = 1_000;
const AGAIN_MS = 250;

/** A message on its way to the holder of a singleton: its id says so however often it is sent. */
export interface SentMessage extends HostMessage {
  readonly id: string;
}

/** What became of a message at its holder, as far as its sender knows. */
export interface Reply {
  /** `unknown`: it may have been taken. `refused`: it was not, by the host that was asked. `failed`: its holder cannot take it, now or later. */
  readonly result: 'taken' | 'refused' | 'unknown' | 'failed';
  /** Why it was not taken, in words. */
  readonly reason: string;
}

interface Waiting {
  readonly message: SentMessage;
  readonly bytes: number;
  /** When it is given up, by `Clock.monotonic`. */
  readonly until: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  /** Once it may have been taken, a later refusal by another host does not undo that. */
  mayBeTaken: boolean;
  reason: string;
}

export interface ToHolderOptions {
  readonly clock: Clock;
  readonly singleton: string;
  /** How long to try, milliseconds. */
  readonly withinMs: number;
  /** @returns how large a message is when it is sent alone */
  readonly sizeOf: (message: SentMessage) => number;
  /** Has the holder take some, in their order. @returns what became of each */
  readonly ask: (messages: readonly SentMessage[]) => Promise<readonly Reply[]>;
}

/**
 * What this host has to say to the holder of a singleton, whoever that is, in the order in which it was said. While some messages are on their way,
 * the next ones wait, and go together then.
 */
export class ToHolder {
  readonly #options: ToHolderOptions;
  /** In the order of the calls, with those that are on their way. */
  readonly #waiting = new Set<Waiting>();
  #isSending = false;
  #isStopped = false;
  #endPause: () => void = () => {};

  constructor(options: ToHolderOptions) {
    this.#options = options;
  }

  /** Messages that wait for their holder. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** @throws HF_CLUSTER_UNDELIVERED, HF_CLUSTER_MESSAGE_SIZE see `HolderMessages.send` */
  async send(given: HostMessage): Promise<void> {
    const { clock, withinMs, sizeOf } = this.#options;
    if (this.#waiting.size >= MOST_WAITING)
      throw this.#undelivered(0, `${MOST_WAITING} messages wait already`);
    const message = { ...given, id: newCorrelation() };
    const [bytes, most] = [sizeOf(message), LARGEST_MESSAGE];
    if (bytes > most) throw new ClusterError('HF_CLUSTER_MESSAGE_SIZE', { topic: given.topic, bytes, most });
    const until = clock.monotonic() + withinMs;
    return new Promise((resolve, reject) => {
      const reason = 'no attempt was made';
      this.#waiting.add({ message, bytes, until, resolve, reject, mayBeTaken: false, reason });
      void this.#sendAll();
    });
  }

  /** What waits is given up; what is on its way, when it has come to its end. */
  stop(): void {
    this.#isStopped = true;
    this.#endPause();
  }

  /** Never rejects. */
  async #sendAll(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let entry = this.#next(); entry.length > 0; entry = this.#next()) {
      const replies = await this.#options.ask(entry.map(({ message }) => message));
      for (const [i, item] of entry.entries()) this.#replied(item, replies[i]);
      // What was refused comes first again.
      if (entry.some((item) => this.#waiting.has(item))) await this.#pause();
    }
    this.#isSending = false;
  }

  #next(): readonly Waiting[] {
    const now = this.#options.clock.monotonic();
    for (const item of this.#waiting) if (this.#isStopped || item.until <= now) this.#giveUp(item);
    return together(this.#waiting);
  }

  #replied(item: Waiting, reply: Reply | undefined): void {
    if (reply?.result === 'taken') {
      this.#waiting.delete(item);
      item.resolve();
      return;
    }
    if (!reply) return;
    if (!item.mayBeTaken) item.reason = reply.reason;
    item.mayBeTaken ||= reply.result === 'unknown';
    if (reply.result === 'failed') this.#giveUp(item);
  }

  #giveUp(item: Waiting): void {
    this.#waiting.delete(item);
    item.reject(this.#undelivered(this.#options.withinMs, item.reason));
  }

  #undelivered(ms: number, reason: string): Error {
    return new ClusterError('HF_CLUSTER_UNDELIVERED', { singleton: this.#options.singleton, ms, reason });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(AGAIN_MS, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
      if (this.#isStopped) this.#endPause();
    });
  }
}
