import type { Clock } from '../../../core/kernel/clock.ts';

/** What goes over a link waits behind what is on its way there: the beats of this host and its leases, too. */
const SLOW_MS = 250;
const BYTES = { first: 128 * 1024, least: 64 * 1024, most: 8 * 1024 * 1024, more: 32 * 1024 };

/** How much may be on its way at once: more while it comes in time, less when the link turns out to be slow. */
export class Pace {
  readonly #clock: Clock;
  #bytes = BYTES.first;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Notes how long something takes. What fails says nothing. */
  measure(answer: Promise<unknown>): void {
    const from = this.#clock.monotonic();
    const note = () => {
      const isSlow = this.#clock.monotonic() - from > SLOW_MS;
      this.#bytes = isSlow
        ? Math.max(BYTES.least, this.#bytes / 2)
        : Math.min(BYTES.most, this.#bytes + BYTES.more);
    };
    answer.then(note, () => {});
  }
}
