import type { Clock } from '../kernel/clock.ts';

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
    await new Promise<void>((resolve) => clock.after(windowMs, resolve));
    await ready();
    this.#open = undefined;
  }
}
