import type { Clock } from '../../../core/kernel/clock.ts';

/**
 * What was seen within a time, so that a message that somebody sends again is known. It forgets nothing before its time: who has no room refuses
 * new messages instead, because one that was forgotten too early could be taken twice.
 */
export class Remembered<T> {
  readonly #clock: Clock;
  readonly #forMs: number;
  readonly #most: number;
  readonly #entries = new Map<string, { readonly at: number; readonly value: T }>();

  /** @param forMs how long each is known @param most how many there may be at once */
  constructor(clock: Clock, forMs: number, most: number) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#most = most;
  }

  get(key: string): T | undefined {
    this.#forget();
    return this.#entries.get(key)?.value;
  }

  /** @returns whether there was room for it */
  add(key: string, value: T): boolean {
    if (!this.hasRoom) return false;
    this.#entries.set(key, { at: this.#clock.monotonic(), value });
    return true;
  }

  get hasRoom(): boolean {
    this.#forget();
    return this.#entries.size < this.#most;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  #forget(): void {
    const since = this.#clock.monotonic() - this.#forMs;
    for (const [key, { at }] of this.#entries) {
      if (at > since) break;
      this.#entries.delete(key);
    }
  }
}
