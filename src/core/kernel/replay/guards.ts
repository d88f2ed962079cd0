import { type AnyMachineSnapshot, type AnyStateMachine, type AnyStateNode, getMicrosteps } from 'xstate';
import type { ActorState } from '../actors/transition.ts';
import { MachineStepper } from '../actors/xstate.ts';
import type { LogEvent } from '../log/record.ts';

/** A transition that the state had for an event: the one taken, or one whose guard refused. */
export interface Candidate {
  /** Where it is declared, e.g. `transaction.none`; empty for the machine itself. */
  readonly state: string;
  /** As declared: `isActive`, `not(isActive)`; absent when it has none. */
  readonly guard?: string;
  /** Where it leads; absent when it stays. */
  readonly target?: string;
  readonly taken: boolean;
}

interface Declared {
  readonly guard?: unknown;
  readonly target?: readonly AnyStateNode[];
}

/**
 * Which transitions a state had for an event, in the order in which they were asked, up to the one that was taken: so
 * the guard that decided is the last one, and those before it refused. Eventless transitions (`always`) that followed
 * come behind it.
 *
 * @param machine of the version that made the record
 * @param before the actor's state before the event
 * @returns nothing for an event that the state does not know, and where the machine has not that state
 */
export function candidatesOf(machine: AnyStateMachine, before: ActorState, event: LogEvent): Candidate[] {
  try {
    const start = new MachineStepper(machine).restore(before.value, before.context, before.done);
    const later = getMicrosteps(machine, start, event).map(([snapshot]) => snapshot);
    // No eventless transition followed the newest snapshot.
    const eventless = (later as AnyMachineSnapshot[])
      .slice(0, -1)
      .flatMap((snapshot) => considered(snapshot, event, ({ always = [] }) => always))
      .filter((one, _, all) => all.some(({ state, taken }) => taken && state === one.state));
    const first = considered(start, event, ({ transitions }) => [
      ...(transitions.get(event.type) ?? []),
      ...(transitions.get('*') ?? []),
    ]);
    return [...first, ...eventless];
  } catch {
    return []; // a guard that throws decides nothing; the record says `failed`
  }
}

/** The transitions that XState considers, from each leaf up to the machine itself, until one is taken. */
function considered(
  snapshot: AnyMachineSnapshot,
  event: LogEvent,
  rows: (node: AnyStateNode) => readonly unknown[],
): Candidate[] {
  const found = new Map<unknown, Candidate>();
  const leaves = (snapshot._nodes as readonly AnyStateNode[]).filter(
    ({ type }) => type === 'atomic' || type === 'final',
  );
  for (const leaf of leaves) {
    const chain: { node: AnyStateNode; declared: Declared }[] = [];
    for (let node: AnyStateNode | undefined = leaf; node; node = node.parent)
      for (const declared of rows(node)) chain.push({ node, declared: declared as Declared });
    for (const { node, declared } of chain) {
      const guard = nameOf(declared.guard);
      const [target] = declared.target ?? [];
      const taken = holds(declared.guard as Guard, snapshot, event);
      found.set(declared, {
        state: node.path.join('.'),
        ...(guard !== undefined && { guard }),
        ...(target && { target: target.path.join('.') }),
        taken,
      });
      if (taken) break;
    }
  }
  return [...found.values()];
}

type Test = ((args: object, params: unknown) => boolean) & {
  /** Only XState's own `and`, `or`, `not` have it. */
  readonly check?: (snapshot: AnyMachineSnapshot, args: object, guard: unknown) => boolean;
};
type Guard = undefined | string | Test | { readonly type: string; readonly params?: unknown };

function holds(guard: Guard, snapshot: AnyMachineSnapshot, event: LogEvent): boolean {
  if (guard === undefined) return true;
  const args = { context: snapshot.context, event };
  if (typeof guard === 'function') {
    return guard.check ? guard.check(snapshot, args, guard) : guard(args, undefined);
  }
  const name = typeof guard === 'string' ? guard : guard.type;
  const test: unknown = snapshot.machine.implementations.guards[name];
  if (!isTest(test)) return false;
  const params = typeof guard === 'string' ? undefined : guard.params;
  if (test.check) return test.check(snapshot, args, test);
  return test(args, typeof params === 'function' ? params(args) : params);
}

function isTest(guard: unknown): guard is Test {
  return typeof guard === 'function';
}

function nameOf(guard: unknown): string | undefined {
  if (guard === undefined) return undefined;
  if (typeof guard === 'string') return guard;
  const { type, guards, name } = guard as { type?: string; guards?: readonly unknown[]; name?: string };
  if (guards) return `${(type ?? name ?? '').replace('xstate.', '')}(${guards.map(nameOf).join(', ')})`;
  return type ?? (name && name !== 'guard' ? name : 'an unnamed guard'); // of the field that it stands in
}
