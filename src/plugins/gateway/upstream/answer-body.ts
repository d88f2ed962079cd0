import type { Dispatcher } from 'undici';
import { UpstreamFault } from './faults.ts';

/** So much is held for a reader that is slow, bytes; then the upstream waits. */
const HELD = 64 * 1024;
/** What nobody needs is read up to here, bytes and milliseconds. */
const DROPPED = 64 * 1024;
const DROPPED_MS = 2_000;

/** An upstream that begins an answer and does not go on. */
export class Stalled extends UpstreamFault {}

type Flow = Pick<Dispatcher.DispatchController, 'pause' | 'resume' | 'abort'>;

/**
 * The body of an upstream's answer, read once. It does for one reader what a stream does for any, at a third of the
 * time: parts go from the connection to whoever iterates, and one that is slow slows the upstream down.
 */
export class AnswerBody implements AsyncIterable<Buffer> {
  readonly #flow: Flow;
  #parts: Buffer[] = [];
  #held = 0;
  #paused = false;
  #over = false;
  #error: unknown;
  #wake: (() => void) | undefined;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  /** Whether nothing more will come: most answers are whole when their headers are read. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Takes a part from the connection. */
  push(part: Buffer): void {
    if (this.#over) return;
    this.#parts.push(part);
    this.#held += part.length;
    if (this.#held > HELD && !this.#paused) {
      this.#paused = true;
      this.#flow.pause();
    }
    this.#wake?.();
  }

  /** Nothing more comes. @param error why it is not whole; it is thrown behind the parts that came */
  end(error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    this.#wake?.();
  }

  /** Ends it, and its connection, unless it is over. @param reason thrown to its reader, before anything that is left */
  destroy(reason?: unknown): void {
    if (this.#over) return;
    const error = reason ?? new Error('destroyed'); // not before: taking its stack is dear, and most bodies are over
    this.#parts = [];
    this.end(error);
    this.#flow.abort(error as Error);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      while (true) {
        const part = this.#parts.shift();
        if (part) {
          this.#release(part.length);
          yield part;
        } else if (this.#over) {
          if (this.#error !== undefined) throw this.#error;
          return;
        } else {
          await this.#more();
        }
      }
    } finally {
      this.destroy();
    }
  }

  /**
   * Gives all parts to one reader, who may take its time: no iterator's promises for each of them.
   *
   * @param take returns when there is room for the next part
   * @param idleMs longest wait for a part; the reader's time does not count
   * @throws why it broke off, what `take` throws, or Stalled
   */
  async each(take: (part: Buffer) => Promise<void> | undefined, idleMs: number): Promise<void> {
    let waiting = false;
    const timer = setTimeout(() => {
      if (waiting) this.destroy(new Stalled());
      else timer.refresh();
    }, idleMs);
    try {
      while (true) {
        const part = this.#parts.shift();
        if (part) {
          this.#release(part.length);
          const room = take(part);
          if (room !== undefined) await room;
        } else if (this.#over) {
          if (this.#error !== undefined) throw this.#error;
          return;
        } else {
          waiting = true;
          timer.refresh();
          await this.#more();
          waiting = false;
        }
      }
    } finally {
      clearTimeout(timer);
      this.destroy();
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** All that is there of a body that is over. @throws why it broke off */
  rest(): Buffer {
    if (this.#error !== undefined) throw this.#error;
    const parts = this.#parts;
    this.#parts = [];
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** Reads what nobody needs, so that its connection can be used again; one that is long or slow ends with it. */
  async dump(): Promise<void> {
    const late = setTimeout(() => this.destroy(), DROPPED_MS);
    let size = 0;
    try {
      for await (const part of this) {
        size += part.length;
        if (size > DROPPED) break;
      }
    } catch {
      // nobody needs it
    } finally {
      clearTimeout(late);
    }
  }

  #release(bytes: number): void {
    this.#held -= bytes;
    if (!this.#paused || this.#held > HELD / 2) return;
    this.#paused = false;
    this.#flow.resume();
  }
}
