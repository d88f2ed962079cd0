import { type Clock, passed } from '../kernel/clock.ts';

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

interface CoalescerOptions<Request, Result> {
  readonly clock: Clock;
  /** How long others may join the first request, milliseconds. */
  readonly windowMs: number;
  /** Resolves when the work may begin; until then others may join, too. */
  readonly ready: () => Promise<void>;
  readonly work: (requests: readonly Request[]) => Promise<Result>;
}

/**
 * Does one piece of work for all requests that arrive within a short window. The work begins after the last of them arrived;
 * a later request begins a new window.
 */
export class Coalescer<Request, Result> {
  readonly #options: CoalescerOptions<Request, Result>;
  #open: { readonly requests: Request[]; readonly result: Promise<Result> } | undefined;

  constructor(options: CoalescerOptions<Request, Result>) {
    this.#options = options;
  }

  /** @returns what `work` returns for the window that the request falls into */
  add(request: Request): Promise<Result> {
    if (this.#open) {
      this.#open.requests.push(request);
      return this.#open.result;
    }
    const requests = [request];
    const result = this.#closed().then(() => this.#options.work(requests));
    this.#open = { requests, result };
    return result;
  }

  async #closed(): Promise<void> {
    const { clock, windowMs, ready } = this.#options;
    await passed(clock, windowMs);
    await ready();
    this.#open = undefined;
  }
}
