/** Work that must not overlap: one piece after another, in the order in which they came. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @returns what `work` returns; a failure ends nobody else's turn */
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when whatever has been taken so far is over. */
  async free(): Promise<void> {
    await this.#last;
  }
}
