import type { Clock } from '../clock.ts';
import { type EffectId, seqOfEffect } from '../ids.ts';
import type { TimerStart } from '../log/record.ts';
import type { ActorSystem } from './system.ts';

/**
 * Durable timers: the log has since when and how long they run, this only wakes the actor at it. The actor system ignores a timer that was
 * cancelled meanwhile, because its id is no longer the armed one.
 */
export class Timers {
  readonly #actors: ActorSystem;
  readonly #clock: Clock;
  readonly #armed = new Map<string, { id: EffectId; disarm: () => void }>();
  #stopped = false;

  constructor(actors: ActorSystem, clock: Clock) {
    this.#actors = actors;
    this.#clock = clock;
  }

  /** Wakes the actor when the timer's delay has passed since it was armed, or at once when it has already. */
  arm(actor: string, id: EffectId, { timer }: Pick<TimerStart, 'timer'>, correlation: string): void {
    // Records become durable while a stop waits for effects; their timers are the next start's.
    if (this.#stopped) return;
    // Effects run after their record is durable: by now the machine may have left the state that wanted the timer.
    const armed = this.#actors.snapshot(actor)?.timers[timer];
    if (armed?.id !== id) return;
    const key = `${actor} ${timer}`;
    this.#armed.get(key)?.disarm();
    const disarm = this.#clock.after(this.#actors.timeLeft(armed), () => {
      this.#armed.delete(key);
      // Its actor may act on another host by now, which has a timer of its own.
      if (!this.#actors.snapshot(actor)) return;
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

  /** Disarms the timers of actors of some types. */
  disarm(types: readonly string[]): void {
    for (const [key, { disarm }] of this.#armed) {
      if (!types.includes(key.slice(0, key.indexOf('/')))) continue;
      disarm();
      this.#armed.delete(key);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const { disarm } of this.#armed.values()) disarm();
    this.#armed.clear();
  }
}
