import { type Clock, systemClock } from '../../../core/kernel/clock.ts';
import { Pace } from './pace.ts';

/** A server drops a connection for which 64 MiB wait: these are 32 of the largest messages. */
const MOST_MESSAGES = 32;
/** Of a message, beside its body. */
const ENVELOPE_BYTES = 512;

/** How many messages of a stream are asked for at once: more while they are small and come in time, so that the link is neither idle nor clogged. */
export class ReadWindow {
  readonly #pace: Pace;
  /** The size of none is known. */
  #size = 1;

  constructor(clock: Clock = systemClock) {
    this.#pace = new Pace(clock);
  }

  get size(): number {
    return this.#size;
  }

  /** @param answer to a question for a message that was sent now */
  asked<T>(answer: Promise<T>): Promise<T> {
    this.#pace.measure(answer);
    return answer;
  }

  /** @param bytes of a body that came */
  came(bytes: number): void {
    const fitting = Math.floor(this.#pace.bytes / (bytes + ENVELOPE_BYTES));
    this.#size = Math.max(1, Math.min(2 * this.#size, fitting, MOST_MESSAGES));
  }
}
