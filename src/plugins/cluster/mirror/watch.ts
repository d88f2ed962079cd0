import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { StreamGap, StreamGone, StreamRewound } from '../nats/stream-errors.ts';
import type { StreamEnds } from '../nats/stream-message.ts';
import type { Writer } from './writer.ts';

/** Between two looks at a stream. */
const LOOK_MS = 4_000;

export interface WatchOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called after each look: `check` may have something to say. */
  readonly onLooked: () => void;
}

/** Looks from time to time whether a stream that is open is still there, where it begins and how much it holds. */
export class StreamWatch {
  readonly #writer: Writer;
  readonly #options: WatchOptions;
  /** Its oldest message: those before it are gone for a reason. */
  #first: number;
  #seen: { readonly ends: StreamEnds; readonly sentBytes: number } | undefined;
  #fault: Error | undefined;
  #cancel: () => void = () => {};
  #isEnded = false;

  /** @param first its oldest message */
  constructor(writer: Writer, first: number, options: WatchOptions) {
    this.#writer = writer;
    this.#first = first;
    this.#options = options;
  }

  /** Looks on, after the first `look`. */
  start(): void {
    this.#cancel = this.#options.clock.after(LOOK_MS, () => void this.#lookOn());
  }

  end(): void {
    this.#isEnded = true;
    this.#cancel();
  }

  /** @throws StreamGone, StreamRewound, StreamGap: it is not what it was */
  check(): void {
    if (this.#fault) throw this.#fault;
  }

  /** Its last message, whoever wrote it, as of the last look. */
  get last(): number {
    return this.#seen?.ends.seq ?? 0;
  }

  /** What it holds with what is under way, about, and the most that it may; undefined until the first look. */
  get bytes(): { readonly held: number; readonly most: number } | undefined {
    if (!this.#seen) return undefined;
    const { ends, sentBytes } = this.#seen;
    return { held: ends.bytes + this.#writer.bytes - sentBytes, most: ends.maxBytes };
  }

  /** This host is about to remove what stands before a message. */
  removes(before: number): void {
    this.#first = Math.max(this.#first, before);
  }

  /** @throws StreamGone, StreamRewound; StreamGap somebody else removed messages; StreamUnavailable, HF_CLUSTER_UNREACHABLE */
  async look(): Promise<StreamEnds> {
    const sentBytes = this.#writer.bytes;
    const { stream } = this.#writer;
    const ends = await stream.last();
    if (ends.firstSeq > this.#first) throw new StreamGap(stream.name, this.#first, ends.firstSeq, ends.seq);
    this.#seen = { ends, sentBytes };
    return ends;
  }

  async #lookOn(): Promise<void> {
    const { logger, onLooked } = this.#options;
    try {
      await this.look();
    } catch (error) {
      const isFault =
        error instanceof StreamGone || error instanceof StreamRewound || error instanceof StreamGap;
      // What else fails now is met by whoever appends.
      if (!isFault) logger.debug({ err: error }, 'cluster.mirror.looks_later');
      else this.#fault = error;
    }
    if (this.#isEnded) return;
    onLooked();
    if (!this.#fault) this.start();
  }
}
