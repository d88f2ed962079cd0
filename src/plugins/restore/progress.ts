import type { Clock } from '../../core/kernel/clock.ts';

/** How far a phase is, for whoever watches. */
export interface Progress {
  readonly text: string;
  readonly done?: number;
  readonly total?: number;
  readonly unit?: 'points' | 'bytes';
  /** Epoch milliseconds. */
  readonly since: number;
  /** By the pace so far, milliseconds. */
  readonly leftMs?: number;
}

type Told = Omit<Progress, 'since' | 'leftMs'>;

/** Of the phase that runs; what is decided stands in the log, this is gone with the process. */
export class ProgressBoard {
  readonly #clock: Clock;
  #now: Progress | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get now(): Progress | undefined {
    const { done = 0, total = 0, since = 0 } = this.#now ?? {};
    if (this.#now === undefined || done === 0 || total < done) return this.#now;
    const leftMs = Math.round(((this.#clock.now() - since) / done) * (total - done));
    return { ...this.#now, leftMs };
  }

  /** Another step begins. */
  begin(text: string, extent: Omit<Told, 'text'> = {}): void {
    this.#now = { text, ...extent, since: this.#clock.now() };
  }

  at(done: number): void {
    if (this.#now) this.#now = { ...this.#now, done };
  }

  end(): void {
    this.#now = undefined;
  }
}
