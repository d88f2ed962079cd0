import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { effectTypes } from '../../../core/kernel/actors/definition.ts';
import { delayOf } from '../../../core/kernel/log/record.ts';

/** A state of a machine, with those inside of it. */
export interface GraphState {
  /** Its path without the machine, e.g. `held.waiting`. */
  readonly id: string;
  readonly name: string;
  readonly kind: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** Name of the state inside of it that is entered first. */
  readonly initial?: string;
  readonly states: readonly GraphState[];
}

/** A way from one state to another. */
export interface GraphTransition {
  /** Id of a state; empty for the machine itself, whose transitions hold in each state. */
  readonly from: string;
  /** The same as `from` where an event changes the context alone. */
  readonly to: string;
  /** Empty where it is taken without an event, as soon as its guard lets it. */
  readonly event: string;
  readonly guard?: string;
  /** Name of the delay, where time is the event. */
  readonly delay?: string;
  /** Effects that it asks for. */
  readonly effects: readonly string[];
}

/** A machine as a statechart, read from the machine itself. */
export interface MachineGraph {
  readonly name: string;
  readonly states: readonly GraphState[];
  readonly transitions: readonly GraphTransition[];
}

/** @returns whether a transition is drawn as a line: others change the context alone, or hold in each state */
export const isLine = ({ from, to }: GraphTransition): boolean => from !== to && from !== '';

const idOf = (node: AnyStateNode): string => node.path.join('.');

/** @returns states in their order of declaration, transitions state by state; the same for the same machine */
export function machineGraph(machine: AnyStateMachine): MachineGraph {
  const effects = new Set(effectTypes(machine));
  const { root } = machine;
  return {
    name: machine.id,
    states: Object.values(root.states).map(stateOf),
    transitions: transitionsOf(root, effects),
  };
}

function stateOf(node: AnyStateNode): GraphState {
  const initial = node.type === 'compound' ? node.initial.target[0]?.key : undefined;
  return {
    id: idOf(node),
    name: node.key,
    kind: node.type,
    ...(initial !== undefined && { initial }),
    states: Object.values(node.states).map(stateOf),
  };
}

function transitionsOf(node: AnyStateNode, effects: ReadonlySet<string>): GraphTransition[] {
  const own = [...node.transitions.values()].flat();
  const drawn = [...own, ...(node.always ?? [])].flatMap(({ eventType, guard, target, actions }) => {
    const delay = delayOf(eventType);
    const named = nameOf(guard);
    const asked = actions.flatMap((action) => nameOf(action) ?? []).filter((name) => effects.has(name));
    return (target ?? [node]).map((to) => ({
      from: idOf(node),
      to: idOf(to),
      event: delay === undefined ? eventType : '',
      ...(named !== undefined && { guard: named }),
      ...(delay !== undefined && { delay }),
      effects: asked,
    }));
  });
  return [...drawn, ...Object.values(node.states).flatMap((inner) => transitionsOf(inner, effects))];
}

/** The name of a guard or an action, as `setup` knows it. */
function nameOf(named: unknown): string | undefined {
  if (typeof named === 'string') return named;
  if (typeof named === 'function') return named.name === '' ? 'a condition' : named.name;
  if (typeof named !== 'object' || named === null || !('type' in named)) return undefined;
  return typeof named.type === 'string' ? named.type : undefined;
}
