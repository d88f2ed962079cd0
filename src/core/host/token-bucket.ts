/** How often something may happen. */
export interface BucketSize {
  /** How many may come at once. */
  readonly burst: number;
  /** How many more each second allows. */
  readonly perSecond: number;
}

/** A token bucket: bursts are taken as they come, and what goes on is held to a rate. */
export class TokenBucket {
  readonly #size: BucketSize;
  #left: number;
  #at: number;

  /** @param now milliseconds of a clock that never goes back */
  constructor(size: BucketSize, now: number) {
    this.#size = size;
    this.#left = size.burst;
    this.#at = now;
  }

  /**
   * Takes a token if there is one.
   *
   * @param now milliseconds of the same clock
   * @returns 0 when it was taken; otherwise how long it takes until there is one, milliseconds
   */
  take(now: number): number {
    const { burst, perSecond } = this.#size;
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1_000) * perSecond);
    this.#at = now;
    if (this.#left < 1) return Math.ceil(((1 - this.#left) / perSecond) * 1_000);
    this.#left -= 1;
    return 0;
  }
}
