import type { AnyMachineSnapshot, AnyStateMachine, AnyStateNode } from 'xstate';
import type { LogEvent, StateValue } from '../log/record.ts';
import { type Choice, choicesIn } from './choices.ts';
import { type Args, RAISE, type StepInPlace } from './steps.ts';

/** Hears of an effect or timer that a transition asks for. */
type Collect = (asked: { type: string; params: unknown }) => void;

/**
 * Takes the transitions of a machine that end where they began. XState looks for the transition anew for every event,
 * and for the active states at every assign, which is most of what such a transition costs; here both are looked up.
 * Everything else is left to XState.
 */
export class InPlace {
  readonly #machine: AnyStateMachine;
  /** Some state has transitions that wait for no event. */
  readonly #eventless: boolean;
  /** By state value and type of event; undefined where XState has to choose. */
  readonly #choices = new Map<string, Map<string, readonly Choice[] | undefined>>();

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
    this.#eventless = hasEventless(machine.root);
  }

  /**
   * @returns the snapshot after the event, the same one when nothing is done; undefined when XState has to step, and
   * what was collected is void. An assign that throws throws here.
   */
  next(from: AnyMachineSnapshot, event: LogEvent, collect: Collect): AnyMachineSnapshot | undefined {
    if (this.#eventless || from.status !== 'active') return undefined;
    const choices = this.#choicesOf(from.value, event.type);
    const chosen = choices && choose(choices, from, event);
    return chosen?.steps && take(chosen.steps, from, event, collect);
  }

  #choicesOf(value: StateValue, type: string): readonly Choice[] | undefined {
    const state = typeof value === 'string' ? value : JSON.stringify(value);
    let byType = this.#choices.get(state);
    if (!byType) {
      byType = new Map();
      this.#choices.set(state, byType);
    }
    if (!byType.has(type)) byType.set(type, choicesIn(this.#machine, value, type));
    return byType.get(type);
  }
}

const NOTHING: Choice = { guard: undefined, steps: [] };

function choose(choices: readonly Choice[], from: AnyMachineSnapshot, event: LogEvent): Choice | undefined {
  const args: Args = { context: from.context, event };
  try {
    for (const choice of choices) if (!choice.guard || choice.guard(args, from)) return choice;
  } catch {
    return undefined; // XState says in which guard it was
  }
  return NOTHING;
}

function take(
  steps: readonly StepInPlace[],
  from: AnyMachineSnapshot,
  event: LogEvent,
  collect: Collect,
): AnyMachineSnapshot | undefined {
  let next = from;
  for (const { type, params, assignment } of steps) {
    const args: Args = { context: next.context, event };
    const given = typeof params === 'function' ? params(args) : params;
    if (assignment) next = withAssigned(next, assignment(args, given));
    else if (type === RAISE && typeof (given as { delay?: unknown }).delay !== 'number') {
      return undefined; // an event for now, not a timer
    } else collect({ type, params: given });
  }
  return next;
}

/** A new snapshot in any case, for something was done; a new context only where something else is in it. */
function withAssigned(from: AnyMachineSnapshot, assigned: object): AnyMachineSnapshot {
  const nothing = Object.keys(assigned).length === 0;
  const context = nothing ? from.context : { ...from.context, ...assigned };
  return { ...from, context } as AnyMachineSnapshot;
}

/** @returns whether a state, or one within it, has transitions that wait for no event */
function hasEventless({ always, states }: AnyStateNode): boolean {
  return always !== undefined || Object.values(states).some(hasEventless);
}
