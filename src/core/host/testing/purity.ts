import type { AnyStateMachine } from 'xstate';
import { isObject } from '../../kernel/json.ts';

/** Something in a machine that replay could not repeat. @public */
export interface Impurity {
  /** Where it stands, e.g. `states.open.entry` or `setup.guards.known`. */
  readonly where: string;
  /** What it is, e.g. `Date`, `invoke`, `unnamed delay 500`. */
  readonly what: string;
}

/** Names that reach for time, chance, the outside, or a later turn. */
const impureNames =
  /(?<![.\w$])(Date|performance|process|fetch|crypto|console|globalThis|require|eval|setTimeout|setInterval|setImmediate|queueMicrotask|await|async|spawn|Math\s*\.\s*random|import(?=\s*\())(?![\w$]|\s*:[^:])/g;
const notCode = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;

/** The impure names in a piece of JavaScript or TypeScript, comments and strings apart. @internal */
export function impureNamesIn(source: string): string[] {
  const found = source.replace(notCode, ' ').matchAll(impureNames);
  return [...new Set([...found].map(([name]) => name.replace(/\s/g, '')))];
}

/**
 * Finds in a machine's definition what the actor system cannot run or replay cannot repeat (C3): invoked and
 * spawned actors, history, delays without a name, inline actions other than `assign`, names without an
 * implementation, and functions that reach for time, chance or the outside.
 *
 * It reads functions but does not follow what they call, and cannot see a mutation: drive the machine with
 * `given` too, which freezes every context.
 *
 * @returns an empty list for a machine that may be used
 * @public
 */
export function impurities(machine: AnyStateMachine): Impurity[] {
  return [...inSetup(machine), ...inState(machine, machine.config as Config, '')];
}

type Config = Readonly<Record<string, unknown>>;
type Named = Readonly<Record<string, unknown>>;

function* inSetup({ implementations }: AnyStateMachine): Generator<Impurity> {
  const { actions, guards, delays, actors } = implementations;
  for (const [name, action] of Object.entries(actions ?? {}))
    yield* inNamedAction(action, `setup.actions.${name}`);
  for (const [name, guard] of Object.entries(guards ?? {})) yield* inFunction(guard, `setup.guards.${name}`);
  for (const [name, delay] of Object.entries(delays ?? {})) yield* inFunction(delay, `setup.delays.${name}`);
  for (const name of Object.keys(actors ?? {})) yield { where: `setup.actors.${name}`, what: 'actor' };
}

function* inState(machine: AnyStateMachine, config: Config, path: string): Generator<Impurity> {
  const at = (field: string) => (path ? `${path}.${field}` : field);
  for (const field of ['invoke', 'systemId', 'history']) {
    if (config[field] !== undefined) yield { where: at(field), what: field };
  }
  if (config.type === 'history') yield { where: at('type'), what: 'history' };
  for (const field of ['context', 'output']) yield* inFunction(config[field], at(field));
  for (const field of ['entry', 'exit']) yield* inActions(machine, config[field], at(field));
  for (const field of ['always', 'onDone']) yield* inTransitions(machine, config[field], at(field));
  for (const [event, rows] of entries(config.on)) yield* inTransitions(machine, rows, at(`on.${event}`));
  for (const [delay, rows] of entries(config.after)) {
    if (!(delay in machine.implementations.delays))
      yield { where: at('after'), what: `unnamed delay ${delay}` };
    yield* inTransitions(machine, rows, at(`after.${delay}`));
  }
  for (const [name, state] of entries(config.states)) {
    yield* inState(machine, state as Config, at(`states.${name}`));
  }
}

function* inTransitions(machine: AnyStateMachine, rows: unknown, where: string): Generator<Impurity> {
  for (const row of listOf(rows)) {
    if (!isObject(row)) continue;
    yield* inActions(machine, row.actions, where);
    yield* inGuard(machine, row.guard, where);
  }
}

function* inActions(machine: AnyStateMachine, actions: unknown, where: string): Generator<Impurity> {
  for (const action of listOf(actions)) {
    if (typeof action === 'function') {
      if (isAssign(action)) yield* inFunction(action, where);
      else yield { where, what: `inline action ${nameOf(action)}` };
    } else {
      yield* inReference(machine.implementations.actions, action, 'action', where);
    }
  }
}

function* inGuard(machine: AnyStateMachine, guard: unknown, where: string): Generator<Impurity> {
  if (guard === undefined) return;
  const inner = (guard as { guards?: unknown }).guards; // and(), or(), not()
  if (inner !== undefined) for (const one of listOf(inner)) yield* inGuard(machine, one, where);
  else if (typeof guard === 'function') yield* inFunction(guard, where);
  else yield* inReference(machine.implementations.guards, guard, 'guard', where);
}

/** A name, alone or with parameters. */
function* inReference(
  implementations: Named,
  reference: unknown,
  kind: string,
  where: string,
): Generator<Impurity> {
  const name = isObject(reference) ? reference.type : reference;
  if (!Object.hasOwn(implementations, String(name))) yield { where, what: `unknown ${kind} ${String(name)}` };
  if (isObject(reference)) yield* inFunction(reference.params, where);
}

function* inNamedAction(action: unknown, where: string): Generator<Impurity> {
  if (typeof action === 'function' && 'resolve' in action && !isAssign(action)) {
    yield { where, what: `action ${nameOf(action)}` };
  } else {
    yield* inFunction(action, where);
  }
}

/** The functions inside an `assign` that compute. */
function* inFunction(value: unknown, where: string): Generator<Impurity> {
  if (isAssign(value)) {
    const { assignment } = value;
    for (const part of isObject(assignment) ? Object.values(assignment) : [assignment]) {
      yield* inFunction(part, where);
    }
  } else if (typeof value === 'function') {
    for (const what of impureNamesIn(value.toString())) yield { where, what };
  }
}

interface Assign {
  readonly type: string;
  readonly assignment: unknown;
}

function isAssign(value: unknown): value is Assign {
  return typeof value === 'function' && (value as { type?: unknown }).type === 'xstate.assign';
}

function nameOf(action: object): string {
  const { type, name } = action as { type?: string; name?: string };
  return type?.replace('xstate.', '') || name || 'without a name';
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function entries(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
