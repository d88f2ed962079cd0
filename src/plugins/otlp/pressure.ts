import type { Clock } from '../../core/kernel/clock.ts';

/** So long without a refusal ends a press, ms. */
const CALM_MS = 5_000;

/** Turns single refusals into two facts: when they began, and when there were none for a while. */
export class Pressure {
  readonly #clock: Clock;
  readonly #changed: (pressed: boolean, refused: number) => void;
  #refused = 0;
  #since = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, changed: (pressed: boolean, refused: number) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  refused(): void {
    this.#refused += 1;
    this.#since += 1;
    if (this.#cancel) return;
    this.#changed(true, 0);
    this.#watch();
  }

  stop(): void {
    this.#cancel?.();
  }

  #watch(): void {
    this.#since = 0;
    this.#cancel = this.#clock.after(CALM_MS, () => {
      if (this.#since > 0) return this.#watch();
      this.#cancel = undefined;
      this.#changed(false, this.#refused);
      this.#refused = 0;
    });
  }
}
