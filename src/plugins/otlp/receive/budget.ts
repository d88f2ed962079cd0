/** The least that a request counts for, bytes: one that waits for its answer costs more than its body. */
const LEAST = 64 * 1024;

/** A request's share of the memory for bodies. */
export interface Share {
  /** @returns whether it can have so many bytes in all */
  grow(bytes: number): boolean;
  /** Once is enough, more do no harm. */
  release(): void;
}

/** Bounds the bytes of all bodies that are being received or wait for their answer. */
export class Budget {
  readonly #limit: number;
  #used = 0;

  /** @param limit bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** @returns undefined when there is no room for so many bytes */
  share(bytes: number): Share | undefined {
    let own = 0;
    const grow = (total: number): boolean => {
      const more = Math.max(total, LEAST) - own;
      if (more <= 0) return true;
      if (this.#used + more > this.#limit) return false;
      own += more;
      this.#used += more;
      return true;
    };
    const release = () => {
      this.#used -= own;
      own = 0;
    };
    return grow(bytes) ? { grow, release } : undefined;
  }
}
