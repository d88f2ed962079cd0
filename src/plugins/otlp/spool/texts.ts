import { free } from '../../../core/host/free.ts';
import type { Frame } from './protocol.ts';

/** Rows that are kept in memory until they are inserted, bytes; of others the spool has a copy. */
const MOST_HELD = 8 * 1024 * 1024;

/** The rows of frames on their way into the database: kept since they were written, or asked of the thread again. */
export class Texts {
  readonly #ask: (frame: string) => boolean;
  readonly #held = new Map<string, Uint8Array>();
  /**
   * Given out last. What was given out before that may still be read by an insert that was given up, and is left to the
   * collector of garbage.
   */
  readonly #out = new Map<string, Uint8Array>();
  readonly #asked = new Map<string, PromiseWithResolvers<Uint8Array | undefined>>();
  #bytes = 0;

  /** @param ask has a frame read from its file; false when nobody can now */
  constructor(ask: (frame: string) => boolean) {
    this.#ask = ask;
  }

  /** @param texts one of each frame */
  hold(frames: readonly Frame[], texts: readonly Uint8Array[]): void {
    for (const [at, { id }] of frames.entries()) {
      const text = texts[at];
      if (!text || this.#bytes + text.length > MOST_HELD) continue;
      this.#held.set(id, text);
      this.#bytes += text.length;
    }
  }

  /**
   * @param fit what the rows are needed for; who reads them from the file knows it, too
   * @returns undefined when they are lost. Rejects while there is no spool to read
   */
  read({ id, fit: written }: Frame, fit: string): Promise<Uint8Array | undefined> {
    const held = this.#held.get(id);
    if (held) {
      this.#held.delete(id);
      this.#bytes -= held.length;
      if (written === fit) {
        this.#out.set(id, held);
        return Promise.resolve(held);
      }
    }
    const asked = Promise.withResolvers<Uint8Array | undefined>();
    this.#asked.set(id, asked);
    if (!this.#ask(id)) this.fail('there is no spool');
    return asked.promise;
  }

  came(frame: string, text: Uint8Array | undefined): void {
    if (text) this.#out.set(frame, text);
    this.#asked.get(frame)?.resolve(text);
    this.#asked.delete(frame);
  }

  /** A frame is inserted, or lost. */
  letGo(frame: string): void {
    const text = this.#out.get(frame);
    this.#out.delete(frame);
    if (text) free(text);
  }

  /** Nobody will answer what was asked. */
  fail(reason: string): void {
    for (const { reject } of this.#asked.values()) reject(new Error(reason));
    this.#asked.clear();
  }
}
