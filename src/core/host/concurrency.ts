/** Keeps pieces of work from overlapping: they run one after another, in the order in which they came. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** @returns what `work` returns; a failure does not keep the next piece from running */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when all work that was given so far is over. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** Bounds how many pieces of work run at a time; what comes later waits in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param permits how many may run at a time */
  constructor(permits: number) {
    this.#free = permits;
  }

  /** Runs `work` as soon as a permit is free. @returns what `work` returns */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
