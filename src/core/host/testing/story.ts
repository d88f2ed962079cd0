import { AssertionError } from 'node:assert';
import type { AnyStateMachine } from 'xstate';
import { MachineStepper, type Step } from '../../kernel/actors/xstate.ts';
import type { Json } from '../../kernel/json.ts';
import {
  delayOf,
  type EffectRequest,
  type LogEvent,
  TIMER_CANCEL,
  TIMER_START,
} from '../../kernel/log/record.ts';

interface Armed {
  readonly delayMs: number;
  /** The name of its delay in `setup`. */
  readonly delay: string;
}

type Timers = ReadonlyMap<string, Armed>;

/** What has happened to a machine so far, and what its newest step did. @internal */
export class Story {
  readonly machine: AnyStateMachine;
  readonly events: readonly LogEvent[];
  readonly step: Step;
  /** What the newest step asked for, timers apart. */
  readonly effects: readonly EffectRequest[];
  /** Armed timers by XState's name for them. */
  readonly #timers: Timers;
  readonly #stepper: MachineStepper;

  private constructor(stepper: MachineStepper, events: readonly LogEvent[], step: Step, before: Timers) {
    this.machine = stepper.machine;
    this.events = events;
    this.step = step;
    this.effects = step.effects.filter(({ type }) => type !== TIMER_START && type !== TIMER_CANCEL);
    this.#timers = armed(before, step.effects);
    this.#stepper = stepper;
    deepFreeze(step.context);
  }

  static begin(machine: AnyStateMachine, input?: Json): Story {
    const stepper = new MachineStepper(machine);
    return new Story(stepper, [], stepper.initial(deepFreeze(input)), new Map());
  }

  next(event: LogEvent): Story {
    const timers = new Map(this.#timers);
    let delivered = event;
    if (event.type === 'elapsed') {
      delivered = { type: this.#armedAs(String(event.timer)) };
      timers.delete(delivered.type);
    }
    const step = this.#stepper.next(this.step.snapshot, deepFreeze(delivered));
    return new Story(this.#stepper, [...this.events, event], step, timers);
  }

  /** Armed timers by the name of their delay, in milliseconds. */
  get timers(): Record<string, number> {
    return Object.fromEntries([...this.#timers.values()].map(({ delay, delayMs }) => [delay, delayMs]));
  }

  #armedAs(delay: string): string {
    for (const [name, timer] of this.#timers) if (timer.delay === delay) return name;
    const waits = Object.keys(this.timers).join(', ') || 'nothing';
    const state = JSON.stringify(this.step.value);
    throw new AssertionError({
      message: `time ${delay} cannot elapse: in state ${state} the machine waits for ${waits}`,
      actual: Object.keys(this.timers),
      expected: [delay],
      operator: 'elapsed',
    });
  }
}

function armed(before: Timers, effects: readonly EffectRequest[]): Timers {
  const timers = new Map(before);
  for (const { type, params } of effects) {
    const { timer, delayMs } = (params ?? {}) as { timer: string; delayMs: number };
    if (type === TIMER_START) timers.set(timer, { delayMs, delay: delayOf(timer) ?? timer });
    if (type === TIMER_CANCEL) timers.delete(timer);
  }
  return timers;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
