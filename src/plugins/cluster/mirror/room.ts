import type { Logger } from '../../../core/host/logging/logger.ts';
import type { ChainPlace } from './batch.ts';
import type { StreamBegin } from './position.ts';
import type { StreamWatch } from './watch.ts';
import type { Writer } from './writer.ts';

/** A stream that is so full is trimmed. */
const FULL = 0.9;
/** From a place behind so much of the stream on it can be read again: when it is full, half of it is kept. */
const BEGIN_EVERY = 0.45;
/** So full is one that has refused a message, because this was larger than the rest. */
const REFUSING = 0.5;
/** Where that does not suffice, it is tried again when so much more was sent. */
const AGAIN = 0.02;

export interface RoomOptions {
  /** Whether the stream has refused a message because it is full. */
  readonly hasRefused: boolean;
  readonly writer: Writer;
  readonly watch: StreamWatch;
  readonly logger: Logger;
  /** The newest place in the stream from which on it can be read, as far as is known. */
  readonly begin: () => StreamBegin | undefined;
  /** What stood before it was removed. */
  readonly onTrimmed: () => void;
  /** Sends the states of all actors after a record, and resolves when they stand on the stream. @param bytesBefore in it */
  readonly beginAgain: (at: ChainPlace, bytesBefore: number) => Promise<void>;
}

/**
 * Keeps a stream within its limit (docs/cluster.md, "The log on a stream"): the states of all actors are put on it from time to time, and
 * when it is nearly full, what stands before them is removed.
 */
export class Room {
  readonly #options: RoomOptions;
  /** It was tried with so many bytes on the stream, and did not suffice. */
  #tried = 0;
  /** This part of the stream is too much. */
  #full: number;

  constructor(options: RoomOptions) {
    this.#options = options;
    this.#full = options.hasRefused ? REFUSING : FULL;
  }

  /** Whether `make` has something to do before more is sent. */
  get isTight(): boolean {
    const bytes = this.#options.watch.bytes;
    if (!bytes || bytes.most <= 0 || bytes.held < this.#tried + AGAIN * bytes.most) return false;
    return bytes.held >= this.#full * bytes.most || this.#since(bytes.held) >= BEGIN_EVERY * bytes.most;
  }

  /**
   * Call it when nothing is under way.
   *
   * @param at the last record on the stream
   * @throws StreamFull there is no room for the states, and what a `StreamWatch` and a `Writer` throw
   */
  async make(at: ChainPlace): Promise<void> {
    const { watch, beginAgain } = this.#options;
    let { bytes, maxBytes } = await watch.look();
    const isFull = () => bytes >= this.#full * maxBytes;
    if (isFull()) bytes = await this.#trim(bytes);
    if (isFull() || this.#since(bytes) >= BEGIN_EVERY * maxBytes) {
      await beginAgain(at, bytes);
      ({ bytes, maxBytes } = await watch.look());
    }
    if (isFull()) bytes = await this.#trim(bytes);
    this.#tried = isFull() ? bytes : 0;
    this.#full = FULL;
  }

  #since(held: number): number {
    return held - (this.#options.begin()?.bytesBefore ?? 0);
  }

  /** Removes what stands before the newest begin. @returns the bytes that are left */
  async #trim(held: number): Promise<number> {
    const { writer, watch, logger, begin, onTrimmed } = this.#options;
    const place = begin();
    if (!place || place.bytesBefore === 0) return held;
    const { streamSeq } = place;
    watch.removes(streamSeq);
    await writer.stream.removeBefore(streamSeq);
    onTrimmed();
    const { bytes } = await watch.look();
    logger.info({ stream: writer.stream.name, before: streamSeq, held, bytes }, 'cluster.mirror.trimmed');
    return bytes;
  }
}
