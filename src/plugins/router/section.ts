/** A critical section: what runs in it runs one after another, in the order it came. */
export class Section {
  #last: Promise<unknown> = Promise.resolve();

  /** @returns what `work` returns; a failure ends nobody else's turn */
  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}
