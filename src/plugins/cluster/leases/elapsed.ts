import type { Clock } from '../../../core/kernel/clock.ts';

/** The time since boot is rounded by the system; milliseconds. */
const ROUNDING_MS = 50;

/**
 * The time that passes, also while the machine is suspended: the monotonic clock stands still then, and a lease would seem
 * to last that other hosts have seen run out.
 */
export class ElapsedClock {
  readonly #clock: Clock;
  readonly #boot: string | undefined;
  readonly #apart: number;
  #suspendedMs = 0;

  constructor(clock: Clock) {
    const sinceBoot = clock.sinceBoot?.();
    this.#clock = clock;
    this.#boot = sinceBoot?.boot;
    this.#apart = (sinceBoot?.ms ?? 0) - clock.monotonic();
  }

  /** How long the machine was suspended since this clock began, milliseconds. */
  get suspendedMs(): number {
    const sinceBoot = this.#clock.sinceBoot?.();
    if (sinceBoot && sinceBoot.boot === this.#boot) {
      const more = sinceBoot.ms - this.#clock.monotonic() - this.#apart;
      if (more > this.#suspendedMs + ROUNDING_MS) this.#suspendedMs = more;
    }
    return this.#suspendedMs;
  }

  /** Milliseconds; it never goes back. */
  now(): number {
    return this.#clock.monotonic() + this.suspendedMs;
  }
}
