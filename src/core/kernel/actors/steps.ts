import type { AnyStateMachine } from 'xstate';
import type { LogEvent } from '../log/record.ts';

export type Transition = ReturnType<AnyStateMachine['getTransitionData']>[number];

/** What guards and actions are given. */
export interface Args {
  readonly context: object;
  readonly event: LogEvent;
}

/** XState's names for its timers: begun on entry of the state that has an `after`, ended on exit. */
export const RAISE = 'xstate.raise';
export const CANCEL = 'xstate.cancel';

/** An action that leaves the state as it is: an assign, or else an effect or a timer. */
export interface StepInPlace {
  readonly type: string;
  /** As they are, or computed from context and event. */
  readonly params: unknown;
  readonly assignment: Builtin['assignment'];
}

/** How XState marks the actions that are its own. */
interface Builtin {
  readonly type: string;
  readonly resolve: unknown;
  readonly assignment: ((args: Args, params: unknown) => object) | undefined;
}

type StateNode = Transition['source'];

/**
 * What a transition does that ends in the state it began in and only assigns, asks for effects and begins timers
 * anew, as most do. XState works out the active states anew for every assign, which is most of what such a transition
 * costs.
 *
 * @returns undefined when it leads somewhere else, or has an action that is none of these
 */
export function stepsInPlace(
  machine: AnyStateMachine,
  transition: Transition,
): readonly StepInPlace[] | undefined {
  const { target, source } = transition;
  const actions = actionsInPlace(machine, transition);
  if (!target || !actions) return actions;
  if (!entersItselfAlone(transition)) return undefined;
  const ended = timersOf(machine, source, 'exit');
  const begun = timersOf(machine, source, 'entry');
  return ended && begun && [...ended, ...actions, ...begun];
}

/** A state without states in it that is left and entered again, and no other with it. */
function entersItselfAlone({ target, source, reenter }: Transition): boolean {
  const isItself = reenter && target?.length === 1 && target[0] === source;
  return isItself && source.type === 'atomic' && source.parent?.type === 'compound' && !source.invoke.length;
}

/** @returns undefined when a state does more on its way in or out than to begin or end timers */
function timersOf(
  machine: AnyStateMachine,
  state: StateNode,
  way: 'entry' | 'exit',
): readonly StepInPlace[] | undefined {
  const steps: StepInPlace[] = [];
  for (const action of state[way]) {
    const { type, sendId, id, delay } = action as unknown as Partial<Timer>;
    if (way === 'exit' && type === CANCEL && typeof sendId === 'string') {
      steps.push({ type, params: { sendId }, assignment: undefined });
    } else if (way === 'entry' && type === RAISE && typeof id === 'string') {
      const wait = typeof delay === 'string' ? machine.implementations.delays[delay] : delay;
      const params = (args: object) => ({
        id,
        delay: typeof wait === 'function' ? wait(args as never, undefined as never) : wait,
      });
      steps.push({ type, params, assignment: undefined });
    } else return undefined;
  }
  return steps;
}

interface Timer {
  readonly type: string;
  readonly sendId: unknown;
  readonly id: unknown;
  readonly delay: unknown;
}

function actionsInPlace(
  machine: AnyStateMachine,
  { actions }: Transition,
): readonly StepInPlace[] | undefined {
  const steps: StepInPlace[] = [];
  for (const action of actions) {
    const { type, params } = typeof action === 'string' ? { type: action } : (action as Partial<StepInPlace>);
    const code: unknown = typeof action === 'function' ? action : machine.implementations.actions[type ?? ''];
    const { type: kind, resolve, assignment } = (code ?? {}) as Partial<Builtin>;
    const assigns = kind === 'xstate.assign' && typeof assignment === 'function';
    if (type === undefined || (resolve && !assigns)) return undefined;
    steps.push({ type, params, assignment: resolve ? assignment : undefined });
  }
  return steps;
}
