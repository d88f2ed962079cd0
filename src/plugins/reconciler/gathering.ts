import type { Clock } from '../../core/kernel/clock.ts';

interface GatheringParts<Question, Answer> {
  readonly clock: Clock;
  /** How long others may join the first who asks, milliseconds. */
  readonly momentMs: number;
  /** Resolves when the work may begin; until then others may join, too. */
  readonly ready: () => Promise<void>;
  readonly work: (asked: readonly Question[]) => Promise<Answer>;
}

/**
 * Does one piece of work for all who ask within a moment. The work begins after the last of them asked; whoever
 * asks later is answered by a later piece.
 */
export class Gathering<Question, Answer> {
  readonly #parts: GatheringParts<Question, Answer>;
  #open: { readonly asked: Question[]; readonly answer: Promise<Answer> } | undefined;

  constructor(parts: GatheringParts<Question, Answer>) {
    this.#parts = parts;
  }

  ask(question: Question): Promise<Answer> {
    if (this.#open) {
      this.#open.asked.push(question);
      return this.#open.answer;
    }
    const asked = [question];
    const answer = this.#closed().then(() => this.#parts.work(asked));
    this.#open = { asked, answer };
    return answer;
  }

  async #closed(): Promise<void> {
    const { clock, momentMs, ready } = this.#parts;
    await new Promise<void>((resolve) => clock.after(momentMs, resolve));
    await ready();
    this.#open = undefined;
  }
}
