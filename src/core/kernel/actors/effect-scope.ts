import { KernelError } from '../errors/kernel-error.ts';

/** What is under way for one type of actor that this host may cease to act for. */
export class EffectScope {
  readonly #end = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
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
      if (this.#running === 0 && this.#end.signal.aborted) this.#ended.resolve();
    }
  }

  /** Begins something and waits for it, but not longer than the scope lasts. @throws the reason of its signal */
  async within(begin: () => Promise<void>): Promise<void> {
    this.signal.throwIfAborted();
    const over = Promise.withResolvers<never>();
    const abort = () => over.reject(this.signal.reason);
    this.signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([begin(), over.promise]);
    } finally {
      this.signal.removeEventListener('abort', abort); // the signal outlives every effect
    }
  }

  /** Whether this host ceases to act for the type. */
  get isEnding(): boolean {
    return this.#end.signal.aborted;
  }

  /** Interrupts what runs and refuses what begins. Resolves when nothing is under way any more. */
  async end(type: string): Promise<void> {
    this.#end.abort(new KernelError('HF_EFFECT_ELSEWHERE', { type }));
    if (this.#running > 0) await this.#ended.promise;
  }
}
