import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import { clockActor } from './machine.ts';
import { clockContextOf, clockFact } from './records.ts';

/** Each record looks too; this is for an instance that has nothing to record. Milliseconds. */
const EVERY_MS = 30_000;

/** Looks at the wall clock from time to time, and has a jump before the start announced once the plugins run. */
export class ClockLooks {
  readonly #actors: ActorSystem;
  readonly #clock: Clock;
  #cancel: () => void = () => {};

  constructor({ actors, clock }: { readonly actors: ActorSystem; readonly clock: Clock }) {
    this.#actors = actors;
    this.#clock = clock;
    const context = clockContextOf(actors.snapshot(CLOCK.actor));
    if (context && context.aheadMs !== 0 && !context.announced)
      actors.send(clockActor, parseActorRef(CLOCK.actor).key, { type: 'ANNOUNCE' });
    this.#look();
  }

  /** The fact of health pages. */
  fact(): Json {
    this.#actors.lookAtClock();
    return clockFact(clockContextOf(this.#actors.snapshot(CLOCK.actor)));
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    this.#actors.lookAtClock();
    this.#cancel = this.#clock.after(EVERY_MS, () => this.#look());
  }
}
