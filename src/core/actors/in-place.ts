import type { AnyStateMachine } from 'xstate';

export type Transition = ReturnType<AnyStateMachine['getTransitionData']>[number];

/** An action that leaves the state as it is: an assign, or else an effect. */
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
  readonly assignment: ((args: object, params: unknown) => object) | undefined;
}

/**
 * What a transition does that changes no state and only assigns and asks for effects, as most do. XState works out
 * the active states anew for every assign, which is most of what such a transition costs.
 *
 * @returns nothing when it leads somewhere, or has an action that is neither
 */
export function stepsInPlace(
  machine: AnyStateMachine,
  { target, actions }: Transition,
): readonly StepInPlace[] {
  if (target) return [];
  const steps: StepInPlace[] = [];
  for (const action of actions) {
    const { type, params } = typeof action === 'string' ? { type: action } : (action as Partial<StepInPlace>);
    const code: unknown = typeof action === 'function' ? action : machine.implementations.actions[type ?? ''];
    const { resolve, assignment } = (code ?? {}) as Partial<Builtin>;
    const assigns = (code as Partial<Builtin> | undefined)?.type === 'xstate.assign';
    if (type === undefined || (resolve && !(assigns && typeof assignment === 'function'))) return [];
    steps.push({ type, params, assignment: resolve ? assignment : undefined });
  }
  return steps;
}

/** @returns whether a state, or one within it, has transitions that wait for no event */
export function hasEventless({ always, states }: AnyStateMachine['root']): boolean {
  return always !== undefined || Object.values(states).some(hasEventless);
}
