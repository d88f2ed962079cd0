/** One beat as pages show it. */
export interface ShownBeat {
  readonly at: number;
  readonly up: boolean;
  readonly ping?: number;
}

/** Beats kept of each monitor; some 1.3 KB. */
const BEATS_KEPT = 100;

/** The newest beats of one monitor since the start: what older pages and badges draw. Nothing is decided by them. */
export class BeatRing {
  readonly #at = new Float64Array(BEATS_KEPT);
  readonly #ping = new Int32Array(BEATS_KEPT);
  readonly #up = new Uint8Array(BEATS_KEPT);
  #count = 0;

  add({ at, up, ping = -1 }: ShownBeat): void {
    const index = this.#count % BEATS_KEPT;
    this.#at[index] = at;
    this.#up[index] = up ? 1 : 0;
    this.#ping[index] = Math.min(ping, 2 ** 31 - 1);
    this.#count += 1;
  }

  /** Oldest first. */
  list(): ShownBeat[] {
    const kept = Math.min(this.#count, BEATS_KEPT);
    return Array.from({ length: kept }, (_, offset) => {
      const index = (this.#count - kept + offset) % BEATS_KEPT;
      const ping = this.#ping[index] ?? -1;
      return { at: this.#at[index] ?? 0, up: this.#up[index] === 1, ...(ping >= 0 && { ping }) };
    });
  }
}
