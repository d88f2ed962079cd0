/** What may be on its way at once, bytes, as far as the messages before tell. */
const MOST_BYTES = 8 * 1024 * 1024;
/** A server drops a connection for which 64 MiB wait: these are 32 of the largest messages. */
const MOST_MESSAGES = 32;
/** Of a message, beside its body. */
const ENVELOPE_BYTES = 512;

/** How many messages of a stream are asked for at once: more while they are small, so that a slow link is not idle. */
export class ReadWindow {
  #size: number;

  /** @param first how many are asked for before the size of any is known */
  constructor(first = 4) {
    this.#size = first;
  }

  get size(): number {
    return this.#size;
  }

  /** @param bytes of a body that came */
  came(bytes: number): void {
    const fitting = Math.floor(MOST_BYTES / (bytes + ENVELOPE_BYTES));
    this.#size = Math.max(1, Math.min(2 * this.#size, fitting, MOST_MESSAGES));
  }
}
