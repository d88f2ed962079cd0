import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { type ChainPlace, nextBatch, stateMessages } from './batch.ts';
import type { FencePlace, KeptFence } from './kept-fences.ts';
import type { StatesAt } from './outbox-options.ts';
import type { Writable } from './own-stream.ts';
import type { Writer } from './writer.ts';

/**
 * How long a record waits for others that go with it, unless somebody waits for it: each message is sealed, stored and read back. Longer
 * than the log waits between two commits, so that a message has the records of two.
 */
const LINGER_MS = 50;
/** So many go at once. */
const ENOUGH_RECORDS = 250;
/** A takeover reads the newest states and about so many records behind them at most, and so many messages, whoever wrote them. */
const STATES_EVERY = 2_000;

/** What is to be sent now. */
export interface Wanted {
  /** The newest record that is durable here. */
  readonly durable: number;
  /** The newest record that somebody waits for. */
  readonly urgent: number;
  /** `flush`: what is left, with the states, and then no more. */
  readonly stopping: 'no' | 'flush' | 'now';
}

export interface SenderOptions {
  readonly reader: SqliteReader;
  readonly clock: Clock;
  /** Bytes that the body of a message may have. */
  readonly largest: number;
  /** The states of the actors of singletons, as they are now. */
  readonly states: () => StatesAt;
  readonly wanted: () => Wanted;
  /** Resolves at the next `wake`. */
  readonly woken: () => Promise<void>;
  readonly wake: () => void;
  /** A fence of an earlier stream stands on this one. */
  readonly onPlaced: (fence: KeptFence, stands: FencePlace) => Promise<void>;
}

/** Decides what goes to the stream when: records as they become durable, and states from time to time. */
export class Sender {
  readonly #options: SenderOptions;
  #sent: ChainPlace = { seq: 0, hash: '' };
  /** States that go when the records up to theirs are on the stream. */
  #statesAt: StatesAt | undefined;
  /** The record of the newest states that were sent, and their last message. */
  #statesSent = { seq: 0, streamSeq: 0 };
  /** Behind this record a fence comes first. */
  #mostSent = Number.POSITIVE_INFINITY;
  #lingerUntil: number | undefined;
  #cancelLinger: () => void = () => {};

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Sends what comes, until the stop. @throws what the stream says, when nothing is under way any more */
  async send({ writer, sent, watch, room, nextFence, states }: Writable): Promise<void> {
    const { wanted, woken } = this.#options;
    this.#sent = sent;
    // Those that were sent may have failed.
    this.#statesSent = states() ?? { seq: 0, streamSeq: 0 };
    this.#statesAt = undefined;
    watch.start();
    try {
      while (wanted().stopping !== 'now') {
        writer.check();
        watch.check();
        this.#askForStates(Math.max(writer.last, watch.last));
        const fence = nextFence(this.#sent.seq);
        this.#mostSent = fence?.atSeq ?? Number.POSITIVE_INFINITY;
        if (fence && fence.atSeq <= this.#sent.seq) {
          if (writer.isSettled) await this.#placeAgain(writer, fence);
          else await woken();
        } else if (room.isTight && wanted().stopping === 'no') {
          if (writer.isSettled) await room.make(this.#sent);
          else await woken();
        } else if (writer.hasRoom && this.#isDue(writer)) {
          this.#sendSome(writer);
          await turn();
        } else if (this.#isDone(writer)) return;
        else await woken();
      }
    } catch (error) {
      await writer.settled();
      throw error;
    } finally {
      watch.end();
    }
  }

  /** Nothing is sent behind it before it stands there: else what does not count would, if something took its place. */
  async #placeAgain(writer: Writer, fence: KeptFence): Promise<void> {
    const streamSeq = writer.fence(fence);
    await writer.stands();
    await this.#options.onPlaced(fence, { incarnation: writer.incarnation, streamSeq });
  }

  /** The states are those after the newest record: what is sent stops there for them. @param last message of the stream */
  #askForStates(last: number): void {
    if (this.#statesAt) return;
    const { durable, stopping } = this.#options.wanted();
    const { seq } = this.#sent;
    const isDue =
      stopping === 'flush'
        ? this.#statesSent.seq < durable || this.#statesSent.seq < seq
        : Math.max(seq - this.#statesSent.seq, last - this.#statesSent.streamSeq) >= STATES_EVERY &&
          durable - seq < STATES_EVERY;
    if (isDue) this.#statesAt = this.#options.states();
  }

  #isDue(writer: Writer): boolean {
    const { durable, urgent, stopping } = this.#options.wanted();
    const { seq } = this.#sent;
    // With nothing else under way: so the records before them count for sure.
    if (this.#statesAt && this.#statesAt.seq <= seq) return writer.isSettled;
    const waiting = Math.min(durable, this.#mostSent) - seq;
    if (waiting <= 0) return false;
    if (waiting >= ENOUGH_RECORDS || urgent > seq || stopping === 'flush') return true;
    const now = this.#options.clock.monotonic();
    if (this.#lingerUntil === undefined) {
      this.#lingerUntil = now + LINGER_MS;
      this.#cancelLinger = this.#options.clock.after(LINGER_MS, () => {
        this.#lingerUntil = Number.NEGATIVE_INFINITY; // a timer may fire before its time
        this.#options.wake();
      });
    }
    return now >= this.#lingerUntil;
  }

  #isDone(writer: Writer): boolean {
    const { durable, stopping } = this.#options.wanted();
    return (
      stopping === 'flush' && writer.isSettled && this.#sent.seq >= durable && this.#statesAt === undefined
    );
  }

  #sendSome(writer: Writer): void {
    const { largest, reader, wanted } = this.#options;
    const { durable } = wanted();
    const sent = this.#sent;
    if (this.#statesAt && this.#statesAt.seq <= sent.seq) {
      const { states } = this.#statesAt;
      this.#statesAt = undefined;
      for (const message of stateMessages(sent, states, largest)) writer.append(message);
      this.#statesSent = { seq: sent.seq, streamSeq: writer.last };
      return;
    }
    const to = Math.min(durable, this.#statesAt?.seq ?? durable, this.#mostSent);
    const batch = nextBatch(reader, sent, to, largest);
    if (!batch) return;
    this.#sent = batch.end;
    this.#cancelLinger();
    // What did not fit, or has to stand behind states, has waited as long as what goes now.
    this.#lingerUntil = batch.end.seq < durable ? Number.NEGATIVE_INFINITY : undefined;
    for (const message of batch.messages) writer.append(message);
  }
}
