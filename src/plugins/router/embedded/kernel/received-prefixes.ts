import type { Clock } from '../../../../core/kernel/clock.ts';
import type { ObservedRa } from '../../config/advertisements.ts';
import type { ReceivedPrefix } from './monitor-lines.ts';

/** Others are forgotten first, the oldest of them before the rest. */
const MOST = 512;
/** An advertisement without an end, or with a very long one, counts for this long after it was received. */
const LONGEST_S = 86_400;

/** The prefixes that advertisements gave, until their lifetimes end. */
export class ReceivedPrefixes {
  readonly #clock: Clock;
  /** By interface, prefix and lifetime: senders with the same of all three cannot be told apart. */
  readonly #found = new Map<string, ObservedRa & { readonly at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add({ intf, prefix, validS }: ReceivedPrefix): void {
    const lifetime = Math.min(validS, 0xffff_ffff);
    const key = `${intf} ${prefix} ${lifetime}`;
    this.#found.delete(key); // the newest stands last
    this.#found.set(key, { intf, prefix, lifetime, at: this.#clock.now() });
    const [oldest] = this.#found.keys();
    if (this.#found.size > MOST && oldest !== undefined) this.#found.delete(oldest);
  }

  list(): ObservedRa[] {
    const now = this.#clock.now();
    return [...this.#found.values()]
      .filter(({ at, lifetime }) => now - at < Math.min(lifetime, LONGEST_S) * 1_000)
      .map(({ intf, prefix, lifetime }) => ({ intf, prefix, lifetime }));
  }
}
