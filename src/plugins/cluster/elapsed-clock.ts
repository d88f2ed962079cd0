import type { Clock } from '../../core/kernel/clock.ts';
import type { EpochMs } from '../../core/kernel/ids.ts';

/** The time since boot is rounded by the system; milliseconds. */
const ROUNDING_MS = 50;

/**
 * A clock whose durations count the time that passes while the machine is suspended, too: the monotonic clock stands still then. A lease
 * would seem to last that other hosts have seen run out, and a host that wakes would seem to have heard of the others just now.
 */
export class ElapsedClock implements Clock {
  readonly #clock: Clock;
  readonly #boot: string | undefined;
  readonly #apart: number;
  /** How far the wall clock was ahead at the last look at the time since boot, which is read from a file. */
  #wallAhead = Number.NaN;
  #suspendedMs = 0;

  constructor(clock: Clock) {
    const sinceBoot = clock.sinceBoot?.();
    this.#clock = clock;
    this.#boot = sinceBoot?.boot;
    this.#apart = (sinceBoot?.ms ?? 0) - clock.monotonic();
  }

  now(): EpochMs {
    return this.#clock.now();
  }

  /** Milliseconds; it never goes back. */
  monotonic(): number {
    return this.#clock.monotonic() + this.suspendedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#clock.after(delayMs, callback);
  }

  /** How long the machine was suspended since this clock began, milliseconds. */
  get suspendedMs(): number {
    // A suspend sets the wall clock ahead of the monotonic one by as much as it lasted.
    const wallAhead = this.#clock.now() - this.#clock.monotonic();
    if (Math.abs(wallAhead - this.#wallAhead) <= ROUNDING_MS) return this.#suspendedMs;
    this.#wallAhead = wallAhead;
    const sinceBoot = this.#clock.sinceBoot?.();
    if (sinceBoot && sinceBoot.boot === this.#boot) {
      const more = sinceBoot.ms - this.#clock.monotonic() - this.#apart;
      if (more > this.#suspendedMs + ROUNDING_MS) this.#suspendedMs = more;
    }
    return this.#suspendedMs;
  }
}
