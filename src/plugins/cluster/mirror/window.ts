import type { Clock } from '../../../core/kernel/clock.ts';
import { Pace } from '../nats/pace.ts';

/** So many wait for their acknowledgement at once: enough for the server's full rate, and bounded in memory. */
const MOST_MESSAGES = 64;

/**
 * Messages that were appended one behind the other and wait for their acknowledgements. When another host's message comes
 * between, it takes the place of one, which is refused, and those behind it fit again: so one counts only when all before it do.
 */
export class Window {
  readonly #changed: () => void;
  readonly #pace: Pace;
  readonly #open = new Set<Promise<void>>();
  #bytes = 0;
  #lastBytes = 0;
  #failure: { readonly error: unknown } | undefined;
  #count: Promise<boolean> = Promise.resolve(true);

  /** @param changed called when a message was acknowledged or refused */
  constructor(changed: () => void, clock: Clock) {
    this.#changed = changed;
    this.#pace = new Pace(clock);
  }

  get hasRoom(): boolean {
    // The next one is about as large as the last.
    const bytes = this.#bytes + this.#lastBytes;
    return this.#open.size === 0 || (this.#open.size < MOST_MESSAGES && bytes <= this.#pace.bytes);
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  /** @throws why the first message failed that did */
  check(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /**
   * @param appended settles with the answer of the server
   * @param counts called when this message and all before it stand on the stream
   */
  add(appended: Promise<void>, bytes: number, counts: () => void): void {
    this.#bytes += bytes;
    this.#lastBytes = bytes;
    this.#pace.measure(appended);
    const before = this.#count;
    const isStored = appended.then(
      () => true,
      (error: unknown) => {
        this.#failure ??= { error };
        return false;
      },
    );
    const isCounted = Promise.all([before, isStored]).then(([a, b]) => a && b);
    this.#count = isCounted;
    const done = isCounted.then((isIn) => {
      this.#bytes -= bytes;
      this.#open.delete(done);
      if (isIn) counts();
      this.#changed();
    });
    this.#open.add(done);
    void isStored.then((isIn) => isIn || this.#changed());
  }

  /** Resolves when nothing is under way any more: each was acknowledged, refused, or given up. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }
}
