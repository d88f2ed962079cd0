import { type AnyMachineSnapshot, type AnyStateMachine, createActor } from 'xstate';
import { HoldfastError } from '../errors/index.ts';
import type { Json } from '../json.ts';
import {
  type EffectRequest,
  type LogEvent,
  type StateValue,
  TIMER_CANCEL,
  TIMER_START,
} from '../log/record.ts';
import { CANCEL, hasEventless, RAISE, type StepInPlace, stepsInPlace, type Transition } from './in-place.ts';

/** What one event did to a machine. */
export interface Step {
  /** XState's own snapshot, to step on from. */
  readonly snapshot: AnyMachineSnapshot;
  readonly value: StateValue;
  readonly context: unknown;
  /** The machine reached a final state. */
  readonly done: boolean;
  /**
   * What the machine asks for, in order. A timer appears as `timer.start {timer, delayMs}` and
   * `timer.cancel {timer}`.
   */
  readonly effects: readonly EffectRequest[];
  /** The state has no transition for the event, or one that does nothing. */
  readonly ignored: boolean;
}

type ActorScope = Parameters<AnyStateMachine['transition']>[2];
type Action = Pick<Parameters<ActorScope['actionExecutor']>[0], 'type'> & { readonly params: unknown };

/**
 * Runs a machine purely, and is our whole surface toward XState's inside.
 *
 * XState's public `transition` builds a throw-away actor for every call. This keeps one inert actor scope and
 * calls the machine's own `transition` with it, or, for a transition that ends where it began, carries its actions out
 * itself: the same answers (a test compares them for every machine) in a fraction of the time. The price is that
 * `ActorScope` is XState's internal contract, hence the exact pin.
 */
export class MachineStepper {
  readonly machine: AnyStateMachine;
  readonly #scope: ActorScope;
  /** Some state has transitions that wait for no event. */
  readonly #eventless: boolean;
  readonly #steps = new Map<Transition, readonly StepInPlace[]>();
  #effects: EffectRequest[] = [];

  constructor(machine: AnyStateMachine) {
    this.machine = machine;
    this.#eventless = hasEventless(machine.root);
    const self = createActor(machine);
    const nothing = () => {};
    this.#scope = {
      self,
      system: self.system,
      id: machine.id,
      sessionId: '',
      logger: nothing,
      defer: nothing,
      emit: nothing,
      stopChild: nothing,
      actionExecutor: (action) => this.#collect(action),
    };
  }

  /** The machine's first step. @param input recorded with the `init` event */
  initial(input?: Json): Step {
    this.#effects = [];
    const snapshot = this.machine.getInitialSnapshot(this.#scope, input as never) as AnyMachineSnapshot;
    return this.#step(snapshot, false);
  }

  /** Steps on from a snapshot. A guard or assign that throws throws here. */
  next(from: AnyMachineSnapshot, event: LogEvent): Step {
    this.#effects = [];
    const snapshot =
      this.#inPlace(from, event) ??
      (this.machine.transition(from, event as never, this.#scope) as AnyMachineSnapshot);
    return this.#step(snapshot, snapshot === from && this.#effects.length === 0);
  }

  /** A snapshot again from what the log keeps of it. */
  restore(value: StateValue, context: unknown, done: boolean): AnyMachineSnapshot {
    const persisted = { status: done ? 'done' : 'active', value, context, children: {}, historyValue: {} };
    return this.machine.restoreSnapshot(persisted as never, this.#scope as never) as AnyMachineSnapshot;
  }

  /** @returns undefined when the event may do more than assign and ask for effects */
  #inPlace(from: AnyMachineSnapshot, event: LogEvent): AnyMachineSnapshot | undefined {
    if (this.#eventless || from.status !== 'active' || event.type.startsWith('xstate.')) return undefined;
    const [transition, ...more] = this.machine.getTransitionData(from, event as never);
    if (!transition || more.length > 0) return undefined;
    const steps = this.#stepsOf(transition);
    if (steps.length === 0) return undefined;
    let context: object = from.context;
    for (const { type, params, assignment } of steps) {
      const given = typeof params === 'function' ? params({ context, event }) : params;
      if (assignment) context = { ...context, ...assignment({ context, event }, given) };
      else if (type === RAISE && typeof (given as { delay?: unknown }).delay !== 'number') {
        this.#effects = []; // an event for now, not a timer
        return undefined;
      } else this.#collect({ type, params: given });
    }
    return { ...from, context } as AnyMachineSnapshot;
  }

  #stepsOf(transition: Transition): readonly StepInPlace[] {
    const known = this.#steps.get(transition);
    if (known) return known;
    const steps = stepsInPlace(this.machine, transition);
    this.#steps.set(transition, steps);
    return steps;
  }

  #step(snapshot: AnyMachineSnapshot, ignored: boolean): Step {
    if (snapshot.status === 'error') throw snapshot.error;
    return {
      snapshot,
      value: snapshot.value as StateValue,
      context: snapshot.context,
      done: snapshot.status === 'done',
      effects: this.#effects,
      ignored,
    };
  }

  #collect(action: Action): void {
    const params = action.params as Record<string, unknown> | undefined;
    if (action.type === RAISE) {
      // Without a delay the event has been consumed within this very step.
      if (params?.delay === undefined) return;
      const timer = { timer: params.id as string, delayMs: params.delay as number };
      this.#effects.push({ type: TIMER_START, params: timer });
    } else if (action.type === CANCEL) {
      this.#effects.push({ type: TIMER_CANCEL, params: { timer: params?.sendId as string } });
    } else if (action.type.startsWith('xstate.')) {
      throw new HoldfastError('HF_MACHINE_IMPURE', { machine: this.machine.id, what: action.type });
    } else {
      this.#effects.push(
        params === undefined ? { type: action.type } : { type: action.type, params: params as Json },
      );
    }
  }
}
