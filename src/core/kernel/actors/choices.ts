import type { AnyMachineSnapshot, AnyStateMachine, AnyStateNode } from 'xstate';
import type { StateValue } from '../log/record.ts';
import { type Args, type StepInPlace, stepsInPlace } from './steps.ts';

/** One of the transitions that a state has for an event. */
export interface Choice {
  readonly guard: ((args: Args, from: AnyMachineSnapshot) => boolean) | undefined;
  /** What it does; undefined when XState has to take it. */
  readonly steps: readonly StepInPlace[] | undefined;
}

/** A function, or one of XState's `and`, `or`, `not` over other guards. */
type Guard = ((args: Args, params?: unknown) => boolean) & {
  readonly check?: (from: AnyMachineSnapshot, args: Args, guard: Guard) => boolean;
};

/**
 * The transitions of one state for one type of event, from the innermost state to the machine itself, as XState asks.
 *
 * @returns undefined where XState has to choose: in parallel states, where wildcards are, and where it would have to
 * take each of them anyway
 */
export function choicesIn(
  machine: AnyStateMachine,
  value: StateValue,
  type: string,
): readonly Choice[] | undefined {
  if (type.startsWith('xstate.')) return undefined;
  const path = pathTo(machine.root, value);
  if (!path || path.some(hasWildcard)) return undefined;
  const choices: Choice[] = [];
  for (const transition of path.flatMap((node) => node.transitions.get(type) ?? [])) {
    const guard = guardOf(machine, transition.guard);
    if (guard === undefined) return undefined;
    choices.push({ guard: guard ?? undefined, steps: stepsInPlace(machine, transition) });
  }
  return choices.length > 0 && choices.every(({ steps }) => !steps) ? undefined : choices;
}

/** @returns undefined in parallel states, and where the machine has no such state */
function pathTo(root: AnyStateNode, value: StateValue): AnyStateNode[] | undefined {
  const path = [root];
  for (let rest: StateValue | undefined = value; rest !== undefined; ) {
    const keys: string[] = typeof rest === 'string' ? [rest] : Object.keys(rest);
    const [key = ''] = keys;
    const node: AnyStateNode | undefined = path[0]?.states[key];
    if (!node || keys.length > 1) return undefined;
    path.unshift(node);
    rest = typeof rest === 'string' ? undefined : rest[key];
  }
  return path;
}

function hasWildcard({ transitions }: AnyStateNode): boolean {
  return [...transitions.keys()].some((descriptor) => descriptor.includes('*'));
}

/** @returns null when there is none to ask; undefined when the machine has none of that name */
function guardOf(machine: AnyStateMachine, guard: unknown): NonNullable<Choice['guard']> | null | undefined {
  if (guard === undefined) return null;
  if (typeof guard === 'function') return guardOfCode(guard as Guard, undefined);
  const { type, params } = (typeof guard === 'string' ? { type: guard } : guard) as Partial<StepInPlace>;
  const named: unknown = machine.implementations.guards[type ?? ''];
  if (typeof named === 'function') return guardOfCode(named as Guard, params);
  return named === undefined ? undefined : guardOf(machine, named);
}

function guardOfCode(guard: Guard, params: unknown): NonNullable<Choice['guard']> {
  const { check } = guard;
  if (check) return (args, from) => check(from, args, guard); // `and`, `or`, `not`
  return typeof params === 'function' ? (args) => guard(args, params(args)) : (args) => guard(args, params);
}
