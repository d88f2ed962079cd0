import type { Clock } from '../../core/kernel/clock.ts';
import type { Failure, Taken } from './spool/protocol.ts';

/** The longest that an answer waits for its rows to be in the database, ms; they are on disk before. */
const ANSWER_WAIT_MS = 2_000;

export type Outcome = (Taken & { readonly kind: 'taken' }) | Failure;

interface Pending {
  readonly answer: (outcome: Outcome) => void;
  /** Once its rows are written. */
  taken?: Taken;
  isSynced?: boolean;
  /** Frames with its rows that are not in the database. */
  left: number;
  cancel?: () => void;
}

/**
 * Bodies that wait for their answer. It is given when their rows are in the database, or when they are synced to disk while
 * inserts fail or take too long.
 */
export class PendingAnswers {
  readonly #clock: Clock;
  readonly #isDatabaseAway: () => boolean;
  readonly #pending = new Map<number, Pending>();
  /** The bodies that wait for a frame. */
  readonly #byFrame = new Map<string, number[]>();
  #next = 1;

  constructor(clock: Clock, isDatabaseAway: () => boolean) {
    this.#clock = clock;
    this.#isDatabaseAway = isDatabaseAway;
  }

  /** @returns a number for the body, and its outcome */
  add(): { readonly id: number; readonly outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = this.#next;
    this.#next = (this.#next % 0x7fff_fffe) + 1; // it must fit a shared 32-bit integer, where 0 stands for none
    this.#pending.set(id, { answer: resolve, left: 0 });
    return { id, outcome: promise };
  }

  /** The rows of a body are written into frames. */
  written(taken: Taken): void {
    const pending = this.#pending.get(taken.id);
    if (!pending) return;
    if (taken.frames.length === 0) this.answer(taken.id, { kind: 'taken', ...taken });
    pending.taken = taken;
    pending.left = taken.frames.length;
    for (const frame of taken.frames) {
      const others = this.#byFrame.get(frame);
      if (others) others.push(taken.id);
      else this.#byFrame.set(frame, [taken.id]);
    }
  }

  /** The rows of a body survive a power cut. */
  synced(id: number): void {
    const pending = this.#pending.get(id);
    if (!pending?.taken) return;
    const outcome: Outcome = { kind: 'taken', ...pending.taken };
    pending.isSynced = true;
    if (this.#isDatabaseAway()) this.answer(id, outcome);
    else pending.cancel = this.#clock.after(ANSWER_WAIT_MS, () => this.answer(id, outcome));
  }

  /** A frame is in the database, or lost. */
  frameDone(frame: string): void {
    for (const id of this.#byFrame.get(frame) ?? []) {
      const pending = this.#pending.get(id);
      if (!pending?.taken) continue;
      pending.left -= 1;
      if (pending.left === 0) this.answer(id, { kind: 'taken', ...pending.taken });
    }
    this.#byFrame.delete(frame);
  }

  /** The database takes nothing: bodies whose rows are synced need not wait for it. */
  answerSynced(): void {
    for (const [id, { taken, isSynced }] of this.#pending) {
      if (taken && isSynced) this.answer(id, { kind: 'taken', ...taken });
    }
  }

  answer(id: number, outcome: Outcome): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    pending.cancel?.();
    pending.answer(outcome);
  }

  answerAll(outcome: Outcome): void {
    for (const id of [...this.#pending.keys()]) this.answer(id, outcome);
  }
}
