import type { LogRecord } from '../log/record.ts';

/** Runs the effects of a record when it is durable (or queued, for `batched` actors). */
export interface EffectRunner {
  run(record: LogRecord): void;
}

/** The records whose effects wait until they are durable, in order. */
export class PendingEffects {
  readonly #undurable: LogRecord[] = [];
  #runner: EffectRunner | undefined;

  /** Without a runner, effects stay open in the log. */
  runWith(runner: EffectRunner): void {
    this.#runner = runner;
  }

  /** Takes a record that was given to the log: its effects run at once when it is `batched`, else when it is durable. */
  add(record: LogRecord): void {
    if (record.effects.length === 0) return;
    if (record.batched) this.#runner?.run(record);
    else this.#undurable.push(record);
  }

  /** Runs the effects of the records up to a seq, which are durable. */
  durable(seq: number): void {
    let next = this.#undurable[0];
    while (next && next.seq <= seq) {
      this.#undurable.shift();
      this.#runner?.run(next);
      next = this.#undurable[0];
    }
  }

  /** Leaves the effects of some actors that wait here open in the log. */
  leaveOpen(isLeft: (actor: string) => boolean): void {
    const others = this.#undurable.filter(({ actor }) => !isLeft(actor));
    this.#undurable.splice(0, this.#undurable.length, ...others);
  }
}
