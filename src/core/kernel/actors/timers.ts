import type { Clock } from '../clock.ts';
import { type EffectId, seqOfEffect } from '../ids.ts';
import type { TimerStart } from '../log/record.ts';
import type { ActorSystem } from './system.ts';

/**
 * Durable timers: the deadline stands in the log, this only wakes up for it. A timer that was cancelled meanwhile
 * is recognised by the actor system, because its id is no longer the armed one.
 */
export class Timers {
  readonly #actors: ActorSystem;
  readonly #clock: Clock;
  readonly #armed = new Map<string, { id: EffectId; disarm: () => void }>();

  constructor(actors: ActorSystem, clock: Clock) {
    this.#actors = actors;
    this.#clock = clock;
  }

  /** Wakes the actor at `timer.at`, or at once when that has passed. */
  arm(actor: string, id: EffectId, { timer, at }: TimerStart, correlation: string): void {
    // Effects run after their record is durable: by now the machine may have left the state that wanted the timer.
    const armed = this.#actors.snapshot(actor)?.timers[timer];
    if (armed?.id !== id) return;
    const key = `${actor} ${timer}`;
    this.#armed.get(key)?.disarm();
    // A clock that was set back must not stretch the wait beyond what was asked for.
    const waitMs = Math.min(at - this.#clock.now(), at - armed.armedAt);
    const disarm = this.#clock.after(waitMs, () => {
      this.#armed.delete(key);
      this.#actors.deliver(actor, { type: timer }, { correlation, cause: seqOfEffect(id), outcome: id });
    });
    this.#armed.set(key, { id, disarm });
  }

  cancel(actor: string, timer: string): void {
    const key = `${actor} ${timer}`;
    const armed = this.#armed.get(key);
    // A newer timer of that name may be armed already when an older record's cancel becomes durable.
    if (!armed || this.#actors.snapshot(actor)?.timers[timer]?.id === armed.id) return;
    armed.disarm();
    this.#armed.delete(key);
  }

  stop(): void {
    for (const { disarm } of this.#armed.values()) disarm();
    this.#armed.clear();
  }
}
