import { KernelError } from '../errors/kernel-error.ts';

/** What is under way for one type of actor that this host may cease to act for. */
export class EffectScope {
  readonly #end = new AbortController();
  /** Aborted when nothing of it may begin any more. */
  readonly #rest = new AbortController();
  /** Of those who wait until nothing is under way. */
  #idle = Promise.withResolvers<void>();
  #running = 0;
  /** Aborted when this host ceases to act for the type, and when the runtime stops. */
  readonly signal: AbortSignal;

  /** @param stop aborted when the runtime stops */
  constructor(stop: AbortSignal) {
    this.signal = AbortSignal.any([this.#end.signal, stop]);
  }

  /** Runs what belongs to the type; `end` waits for it. */
  async run(work: () => Promise<void>): Promise<void> {
    this.#running += 1;
    try {
      await work();
    } finally {
      this.#running -= 1;
      if (this.#running === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  /** Begins something and waits for it, but not longer than something may begin. @throws why nothing may */
  async within(begin: () => Promise<void>): Promise<void> {
    const signals = [this.#rest.signal, this.signal];
    for (const signal of signals) signal.throwIfAborted();
    const over = Promise.withResolvers<never>();
    const abort = () => over.reject(signals.find(({ aborted }) => aborted)?.reason);
    for (const signal of signals) signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([begin(), over.promise]);
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', abort); // they outlive every effect
    }
  }

  /** Whether this host ceases to act for the type. */
  get isEnding(): boolean {
    return this.#end.signal.aborted;
  }

  /** Refuses what begins, and lets what runs come to its end. Resolves when nothing is under way any more. */
  async rest(type: string): Promise<void> {
    this.#rest.abort(new KernelError('HF_EFFECT_ELSEWHERE', { type }));
    if (this.#running > 0) await this.#idle.promise;
  }

  /** Interrupts what runs and refuses what begins. Resolves when nothing is under way any more. */
  async end(type: string): Promise<void> {
    this.#end.abort(new KernelError('HF_EFFECT_ELSEWHERE', { type }));
    if (this.#running > 0) await this.#idle.promise;
  }
}
