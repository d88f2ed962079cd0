import { KernelError } from '../errors/kernel-error.ts';
import type { Blobs } from '../log/event-log.ts';
import type { LogEvent, LogRecord, Origin } from '../log/record.ts';

/** Where an event comes from. */
export interface SendMeta {
  /** The correlation id that it continues; a new one is made when absent. */
  readonly correlation?: string | undefined;
  /** The seq of the record that led to it. */
  readonly cause?: number | undefined;
  /** The record of another host that led to it. */
  readonly origin?: Origin | undefined;
  /** The effect or timer it is the outcome of. */
  readonly outcome?: string | undefined;
  /** Sealed bodies stored in the record's transaction. */
  readonly blobs?: Blobs | undefined;
}

/** How many events may wait for the log; further ones are refused. */
const LIMIT = 10_000;

type Transition = (ref: string, event: LogEvent, meta: SendMeta) => LogRecord;

interface Waiting {
  readonly ref: string;
  readonly event: LogEvent;
  readonly meta: SendMeta;
  readonly decided: (record: LogRecord) => void;
  readonly refused: (error: unknown) => void;
}

/** The events that were sent while the log had no room, in order. */
export class Mailbox {
  readonly #hasRoom: () => boolean;
  readonly #transition: Transition;
  readonly #waiting: Waiting[] = [];
  /** Who wants to send when nothing waits any more. */
  readonly #watching: (() => void)[] = [];

  /** @param hasRoom whether the log takes a record now */
  constructor(hasRoom: () => boolean, transition: Transition) {
    this.#hasRoom = hasRoom;
    this.#transition = transition;
  }

  /** How many events wait. */
  get depth(): number {
    return this.#waiting.length;
  }

  /** Whether an event that is sent now need not wait. */
  isFree(): boolean {
    return this.#waiting.length === 0 && this.#hasRoom();
  }

  /** Resolves when an event that is sent now need not wait; several who want to know it go on in the order in which they asked. */
  async whenFree(): Promise<void> {
    while (!this.isFree()) await new Promise<void>((resolve) => this.#watching.push(resolve));
  }

  /**
   * Lets an event wait.
   *
   * @returns its record once it was decided
   * @throws HF_ACTOR_OVERLOADED too many wait already
   */
  put(ref: string, event: LogEvent, meta: SendMeta): Promise<LogRecord> {
    // An outcome is never refused: its effect would stay open until the next start.
    if (this.#waiting.length >= LIMIT && meta.outcome === undefined) {
      throw new KernelError('HF_ACTOR_OVERLOADED', { limit: LIMIT });
    }
    const { promise, resolve: decided, reject: refused } = Promise.withResolvers<LogRecord>();
    this.#waiting.push({ ref, event, meta, decided, refused });
    promise.catch(() => {}); // who awaits it gets the error
    return promise;
  }

  /** Decides those that wait, as long as the log has room. */
  drain(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      const next = this.#waiting.shift();
      if (!next) return;
      try {
        next.decided(this.#transition(next.ref, next.event, next.meta));
      } catch (error) {
        next.refused(error);
      }
    }
    if (!this.isFree()) return;
    for (const goOn of this.#watching.splice(0)) goOn();
  }
}
