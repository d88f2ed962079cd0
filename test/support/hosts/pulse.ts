import type { Scope } from '../scope.ts';

const EVERY_MS = 50;

/** Notes when this process had to wait for a processor: the others of a busy machine did, too. */
export class Pulse {
  readonly #gaps: { readonly at: number; readonly ms: number }[] = [];

  static start(t: Scope): Pulse {
    const pulse = new Pulse();
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      const ms = now - last - EVERY_MS;
      if (ms > EVERY_MS) pulse.#gaps.push({ at: now, ms });
      last = now;
    }, EVERY_MS);
    t.teardown(() => clearInterval(timer));
    return pulse;
  }

  /** How long this process waited between two times of `performance.now()`, milliseconds. */
  stalledMs(from: number, to: number): number {
    return this.#gaps
      .filter(({ at, ms }) => at > from && at - ms < to)
      .reduce((total, { ms }) => total + ms, 0);
  }
}
