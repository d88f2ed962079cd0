import { Cron } from 'croner';
import type { Bus } from '../../../bus/bus.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Owned, ScheduleRegistration } from '../plugin/registrations.ts';

/** A run may be this much of an interval earlier or later than usual, where the clock was set. */
const PART = 0.5;

/**
 * Publishes each schedule's topic at its times, on the runtime's own clock. Times missed while the process was down
 * are not made up for; work that must not be missed needs a durable timer.
 *
 * A schedule names times of the wall clock, so it follows the clock where that is set. No run is repeated by that, and none
 * left out: between two runs half an interval passes at least, and one and a half at most.
 *
 * @param onClockJump calls back each time that the wall clock was set
 * @returns ends them all
 */
export function startSchedules(
  schedules: readonly Owned<ScheduleRegistration>[],
  bus: Bus,
  clock: Clock,
  onClockJump: (listener: () => void) => void,
): () => void {
  const started = schedules.map(({ cron, topic }) => new Schedule(cron, clock, () => bus.publish(topic, {})));
  onClockJump(() => {
    for (const schedule of started) schedule.followClock();
  });
  return () => {
    for (const schedule of started) schedule.stop();
  };
}

class Schedule {
  readonly #pattern: Cron;
  readonly #clock: Clock;
  readonly #run: () => void;
  /** When it ran last, or would have, by the time that passes. */
  #ranAt: number;
  #isStopped = false;
  #cancel: () => void = () => {};

  constructor(cron: string, clock: Clock, run: () => void) {
    this.#pattern = new Cron(cron, { paused: true, timezone: 'UTC' });
    this.#clock = clock;
    this.#run = run;
    const [before] = this.#pattern.previousRuns(1, new Date(clock.now()));
    this.#ranAt = clock.monotonic() - (before ? clock.now() - before.getTime() : 0);
    this.#arm(this.#next(clock.now()));
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  /** The clock was set. */
  followClock(): void {
    if (this.#isStopped) return;
    const next = this.#next(this.#clock.now());
    const after = next === undefined ? undefined : this.#next(next);
    if (next === undefined || after === undefined) {
      this.#arm(next);
      return;
    }
    const interval = after - next;
    const between = this.#clock.monotonic() - this.#ranAt + (next - this.#clock.now());
    if (between < interval * PART) this.#arm(after);
    else if (between > interval * (1 + PART)) this.#fire();
    else this.#arm(next);
  }

  /** @returns epoch milliseconds; undefined when it never runs again */
  #next(from: number): number | undefined {
    return this.#pattern.nextRun(new Date(from))?.getTime();
  }

  #arm(at: number | undefined): void {
    this.#cancel();
    if (at !== undefined) this.#cancel = this.#clock.after(at - this.#clock.now(), () => this.#fire());
  }

  #fire(): void {
    this.#ranAt = this.#clock.monotonic();
    this.#run();
    this.#arm(this.#next(this.#clock.now()));
  }
}
