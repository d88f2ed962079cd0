import type { Clock } from '../../core/kernel/clock.ts';
import type { Failure, Taken } from './spool/protocol.ts';

/** An answer waits so long for its rows to be in the database, ms; on disk they are before. */
const ANSWER_WAIT_MS = 2_000;

export type Outcome = TakenOutcome | Failure;
type TakenOutcome = Taken & { readonly kind: 'taken' };

interface Waiting {
  readonly answer: (outcome: Outcome) => void;
  taken?: Taken;
  synced?: boolean;
  left: number;
  cancel?: () => void;
}

/**
 * Bodies that wait for their answer: until their rows are in the database, or synced when that must not, or no longer,
 * be waited for.
 */
export class Answers {
  readonly #clock: Clock;
  /** Whether nothing gets into the database. */
  readonly #isAway: () => boolean;
  readonly #waiting = new Map<number, Waiting>();
  /** Which bodies wait for a frame. */
  readonly #byFrame = new Map<string, number[]>();
  #next = 1;

  constructor(clock: Clock, isAway: () => boolean) {
    this.#clock = clock;
    this.#isAway = isAway;
  }

  /** @returns a number for the body, and what will become of it */
  expect(): { readonly id: number; readonly outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = this.#next;
    this.#next = (this.#next % 0x7fff_fffe) + 1;
    this.#waiting.set(id, { answer: resolve, left: 0 });
    return { id, outcome: promise };
  }

  /** The rows of a body are written into frames. */
  written(taken: Taken): void {
    const waiting = this.#waiting.get(taken.id);
    if (!waiting) return;
    if (taken.frames.length === 0) this.give(taken.id, { kind: 'taken', ...taken });
    waiting.taken = taken;
    waiting.left = taken.frames.length;
    for (const frame of taken.frames) {
      const others = this.#byFrame.get(frame);
      if (others) others.push(taken.id);
      else this.#byFrame.set(frame, [taken.id]);
    }
  }

  /** The rows of a body survive a power cut. */
  synced(id: number): void {
    const waiting = this.#waiting.get(id);
    if (!waiting?.taken) return;
    const outcome: Outcome = { kind: 'taken', ...waiting.taken };
    waiting.synced = true;
    if (this.#isAway()) this.give(id, outcome);
    else waiting.cancel = this.#clock.after(ANSWER_WAIT_MS, () => this.give(id, outcome));
  }

  /** A frame is in the database, or lost. */
  done(frame: string): void {
    for (const id of this.#byFrame.get(frame) ?? []) {
      const waiting = this.#waiting.get(id);
      if (!waiting?.taken) continue;
      waiting.left -= 1;
      if (waiting.left === 0) this.give(id, { kind: 'taken', ...waiting.taken });
    }
    this.#byFrame.delete(frame);
  }

  /** Nothing gets into the database: who waits for that has waited enough. */
  giveDurable(): void {
    for (const [id, { taken, synced }] of this.#waiting) {
      if (taken && synced) this.give(id, { kind: 'taken', ...taken });
    }
  }

  give(id: number, outcome: Outcome): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    waiting.cancel?.();
    waiting.answer(outcome);
  }

  giveAll(outcome: Outcome): void {
    for (const id of [...this.#waiting.keys()]) this.give(id, outcome);
  }
}
