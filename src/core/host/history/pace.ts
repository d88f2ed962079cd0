/** Work goes on for so long before the event loop gets its turn, milliseconds; two may do so in one turn. */
const SLICE_MS = 4;

/** When work went on last after a turn; of all work, because one question does many small pieces, each at its own pace. */
let began = Number.NEGATIVE_INFINITY;

/** Resolves when everything else that waits has had its turn; browsers have no `setImmediate`. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve);
  });
}

/** Keeps long work from holding up everything else in the process, and ends it when nobody waits for it any more. */
export class Pace {
  readonly #signal: AbortSignal | undefined;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** Called between two small pieces of work. @throws the signal's reason once it is aborted */
  async next(): Promise<void> {
    if (performance.now() - began < SLICE_MS) return;
    await turn();
    this.#signal?.throwIfAborted();
    began = performance.now();
  }
}

/**
 * Runs work that goes through a log in small steps. Between two steps signals are handled, and others get their turn.
 *
 * @param steps yields how far it is
 * @param onStep gets what is yielded, to show progress
 * @returns what the steps return
 * @throws the signal's reason once it is aborted
 */
export async function runSteps<P, T>(
  steps: Generator<P, T>,
  signal: AbortSignal | undefined,
  onStep: (done: P) => void = () => {},
): Promise<T> {
  const pace = new Pace(signal);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    onStep(value);
    await pace.next();
  }
}
