import { type AnyMachineSnapshot, type AnyStateMachine, createActor } from 'xstate';
import { KernelError } from '../errors/kernel-error.ts';
import type { Json } from '../json.ts';
import {
  type EffectRequest,
  type LogEvent,
  type StateValue,
  TIMER_CANCEL,
  TIMER_START,
} from '../log/record.ts';

/** XState's names for its timers: begun on entry of the state that has an `after`, ended on exit. */
const RAISE = 'xstate.raise';
const CANCEL = 'xstate.cancel';

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
 * Runs a machine purely. XState's public `transition` builds a throw-away actor for every call; this keeps one inert
 * actor scope and calls the machine's own `transition` with it: the same answers (a test compares them for every machine)
 * in a fraction of the time. `ActorScope` is an internal type of XState, so its version is pinned exactly.
 */
export class MachineStepper {
  readonly machine: AnyStateMachine;
  readonly #scope: ActorScope;
  #effects: EffectRequest[] = [];

  constructor(machine: AnyStateMachine) {
    this.machine = machine;
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
    const snapshot = this.machine.getInitialSnapshot(this.#scope, input);
    return this.#step(snapshot, false);
  }

  /** Steps on from a snapshot. A guard or assign that throws throws here. */
  next(from: AnyMachineSnapshot, event: LogEvent): Step {
    this.#effects = [];
    const snapshot = this.machine.transition(from, event, this.#scope);
    return this.#step(snapshot, snapshot === from && this.#effects.length === 0);
  }

  /** Restores a snapshot from the state that the log keeps. */
  restore(value: StateValue, context: unknown, done: boolean): AnyMachineSnapshot {
    const status: 'done' | 'active' = done ? 'done' : 'active';
    const ended = { output: undefined, error: undefined };
    const persisted = { status, value, context, children: {}, historyValue: {}, ...ended };
    return this.machine.restoreSnapshot(persisted, this.#scope);
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
      throw new KernelError('HF_MACHINE_IMPURE', { machine: this.machine.id, what: action.type });
    } else {
      this.#effects.push(
        params === undefined ? { type: action.type } : { type: action.type, params: params as Json },
      );
    }
  }
}
