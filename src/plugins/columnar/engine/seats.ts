import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

/** A few places for work that cannot share one; who comes when all are taken waits in line. */
export class Seats<T> {
  readonly #free: T[];
  readonly #waiting: ((seat: T) => void)[] = [];
  readonly #most: number;
  #taken = 0;

  /** @param most so many may wait */
  constructor(seats: readonly T[], most: number) {
    this.#free = [...seats];
    this.#most = most;
  }

  /** How many are taken, and how many wait. */
  get load(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#taken, waiting: this.#waiting.length };
  }

  /**
   * @param signal gives up waiting; whoever has a seat keeps it until `give`
   * @throws HF_COLUMNAR_BUSY too many wait; the signal's reason
   */
  async take(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const seat = this.#free.pop();
    if (seat !== undefined) {
      this.#taken += 1;
      return seat;
    }
    if (this.#waiting.length >= this.#most)
      throw new HoldfastError('HF_COLUMNAR_BUSY', { reason: `${this.#most} queries wait already` });
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason);
      };
      const turn = (next: T) => {
        signal.removeEventListener('abort', giveUp);
        resolve(next);
      };
      this.#waiting.push(turn);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  give(seat: T): void {
    const next = this.#waiting.shift();
    if (next) {
      next(seat);
      return;
    }
    this.#taken -= 1;
    this.#free.push(seat);
  }
}
