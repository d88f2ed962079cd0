/** Events in virtual time, and chance from a seed: the same seed gives the same run on every machine. */
export class Simulation {
  /** Virtual milliseconds since the start. */
  now = 0;
  #state: number;
  #order = 0;
  readonly #heap: { readonly at: number; readonly order: number; readonly act: () => void }[] = [];

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** @returns at least 0 and less than 1 (mulberry32) */
  chance(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  between(from: number, to: number): number {
    return from + this.chance() * (to - from);
  }

  /** A delay whose middle and 99th percentile were measured: the logarithm is distributed normally. */
  delay({ p50, p99 }: Delay): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.chance())) * Math.cos(2 * Math.PI * this.chance());
    return p50 * Math.exp((normal * Math.log(p99 / p50)) / 2.326);
  }

  after(ms: number, act: () => void): void {
    const heap = this.#heap;
    const event = { at: this.now + ms, order: this.#order, act };
    this.#order += 1;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (!above || !isBefore(event, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
  }

  /** Carries out what is due until a moment. */
  run(until: number): void {
    for (let first = this.#heap[0]; first && first.at <= until; first = this.#heap[0]) {
      this.#removeFirst();
      this.now = first.at;
      first.act();
    }
    this.now = until;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      let below = heap[child];
      const right = heap[child + 1];
      if (below && right && isBefore(right, below)) {
        below = right;
        child += 1;
      }
      if (!below || !isBefore(below, last)) break;
      heap[index] = below;
      index = child;
    }
    heap[index] = last;
  }
}

export interface Delay {
  readonly p50: number;
  readonly p99: number;
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
