import fc from 'fast-check';
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  getNextTransitions,
  initialTransition,
  transition,
} from 'xstate';
import { MachineStepper, type Step } from '../../src/core/kernel/actors/xstate.ts';
import type { EffectRequest, LogEvent } from '../../src/core/kernel/log/record.ts';
import { runs } from './runs.ts';

/** What a drive starts from, and events that make sense to the machine. */
export interface Samples {
  readonly input?: any;
  readonly events?: readonly LogEvent[];
}

/** What a drive found, and the events that led there. */
export class Finding extends Error {}

/** One move of a drive, before it is known what the state understands. */
interface Move {
  /** 0 to PICKS; small ones pick what the innermost state handles. */
  readonly pick: number;
  /** Picks among the events that the state handles. */
  readonly handled: boolean;
  /** Fields of an event that makes no sense. */
  readonly fields: Record<string, unknown>;
}

/**
 * Drives a machine with random events and throws what it finds: a changed context or event, a context or effect
 * that is not plain data, two results for one input, another result after a restart, or another answer than that of
 * XState's public `transition`. A throw for nonsense in an event is not a finding: the actor system records it.
 *
 * @param source the machine's source text, from which the names of its events' fields are learned
 * @returns the states that were visited
 */
export function drive(machine: AnyStateMachine, source: string, samples: Samples = {}): Set<string> {
  const visited = new Set<string>();
  const checked = new Map<string, Step>();
  const names = [...new Set([...source.matchAll(/event(?:\?\.|\.)(\w+)/g)].map(([, name]) => name!))];
  const values = fc.oneof(
    fc.constantFrom(...leaves(samples.input), ...leaves(samples.events), 'a', 0, 1, true),
    fc.jsonValue({ maxDepth: 1 }),
  );
  const moves = (fields: fc.Arbitrary<Move['fields']>) => {
    const handled = fc.nat(9).map((chance) => chance > 0);
    const move: fc.Arbitrary<Move> = fc.record({ pick: fc.nat(PICKS - 1), handled, fields });
    return fc.array(move, { minLength: 1, maxLength: 60, size: 'max' });
  };
  const filled = fc.record(Object.fromEntries(names.map((name) => [name, values])), { requiredKeys: [] });
  const sense = fc.tuple(moves(fc.constant({})), fc.constant(false));
  const nonsense = fc.tuple(moves(filled), fc.constant(true));
  const outcome = fc.check(
    // Without fields to fill, every event makes sense.
    fc.property(names.length > 0 ? fc.oneof(sense, nonsense) : sense, ([list, isNonsense]) => {
      new Drive(machine, samples, isNonsense, visited, checked).run(list);
    }),
    { numRuns: runs(100), seed: 20_260_101 },
  );
  if (outcome.failed) throw outcome.errorInstance;
  return visited;
}

class Drive {
  readonly #machine: AnyStateMachine;
  readonly #stepper: MachineStepper;
  readonly #samples: Samples;
  readonly #nonsense: boolean;
  readonly #visited: Set<string>;
  /** What came of a state and an event that were driven before, in any drive of this machine. */
  readonly #checked: Map<string, Step>;
  readonly #story: string[] = [];

  constructor(
    machine: AnyStateMachine,
    samples: Samples,
    nonsense: boolean,
    visited: Set<string>,
    checked: Map<string, Step>,
  ) {
    this.#machine = machine;
    this.#stepper = new MachineStepper(machine);
    this.#samples = samples;
    this.#nonsense = nonsense;
    this.#visited = visited;
    this.#checked = checked;
  }

  run(moves: readonly Move[]): void {
    let step = this.#begin();
    for (const move of moves) {
      this.#visited.add(JSON.stringify(step.value));
      if (step.done) return;
      const event = this.#eventOf(step, move);
      if (event) step = this.#next(step, event) ?? step;
    }
  }

  #begin(): Step {
    const input = freeze(this.#samples.input);
    this.#story.push('init');
    const step = this.#twice(() => this.#stepper.initial(input));
    const [snapshot, actions] = initialTransition(this.#machine, input);
    this.#compare(snapshot, actions, step);
    return step;
  }

  /** @returns undefined where the machine threw: the actor stays as it was */
  #next(before: Step, event: LogEvent): Step | undefined {
    const told = JSON.stringify(event);
    this.#story.push(told);
    const from = before.snapshot;
    const context = JSON.stringify(before.context ?? {});
    const input = `${this.#nonsense} ${JSON.stringify(before.value)} ${context} ${told}`;
    const known = this.#checked.get(input);
    let step: Step;
    try {
      if (known) {
        step = this.#stepper.next(from, event);
        freeze(step.context);
        if (!same(known, step)) this.#found('two results for the same input');
        return step;
      }
      step = this.#twice(() => this.#stepper.next(from, event));
    } catch (error) {
      if (error instanceof TypeError && mutation.test(error.message))
        this.#found(`mutation: ${error.message}`);
      if (error instanceof Finding) throw error;
      this.#story.pop();
      return undefined;
    }
    const [snapshot, actions] = transition(this.#machine, from, event);
    this.#compare(snapshot, actions, step);
    const restored = this.#stepper.restore(before.value, JSON.parse(context), before.done);
    if (!same(this.#stepper.next(restored, event), step)) this.#found('another result after a restart');
    this.#checked.set(input, step);
    return step;
  }

  /** Runs a step twice on the same frozen input. */
  #twice(make: () => Step): Step {
    const first = make();
    this.#checkData(first);
    freeze(first.context);
    if (!same(first, make())) this.#found('two results for the same input');
    return first;
  }

  #eventOf({ snapshot }: Step, { pick, handled, fields }: Move): LogEvent | undefined {
    const understood = getNextTransitions(snapshot as AnyMachineSnapshot).map(({ eventType }) => eventType);
    const candidates = handled && understood.some(Boolean) ? understood : this.#machine.events;
    const types = candidates.filter((type) => type && !type.includes('*'));
    const type = types[Math.floor(types.length * (pick / PICKS) ** 3)];
    if (!type) return undefined;
    if (this.#nonsense && !type.startsWith('xstate.')) return freeze(structuredClone({ ...fields, type }));
    const fitting = this.#samples.events?.filter((event) => event.type === type) ?? [];
    return freeze(fitting[pick % fitting.length] ?? { type });
  }

  #compare(snapshot: AnyMachineSnapshot, actions: readonly PublicAction[], step: Step): void {
    const { value, context } = snapshot;
    const answer = { value, context, done: snapshot.status === 'done', effects: actions.flatMap(requestOf) };
    if (!same(answer, step)) this.#found("XState's public transition answers otherwise");
  }

  /** Nonsense may lead to null and NaN; no event of plain data explains a function, a Date or a Map. */
  #checkData({ context, effects }: Step): void {
    const bad = notPlain(context, 'context', this.#nonsense) ?? notPlain(effects, 'effects', this.#nonsense);
    if (bad) this.#found(`${bad} is not plain data`);
  }

  #found(what: string): never {
    throw new Finding(`${what}, after ${this.#story.join(' ')}`);
  }
}

const PICKS = 10_000;
const mutation = /read only|not extensible|Cannot (add|delete|assign|define|redefine)/;

interface PublicAction {
  readonly type: string;
  readonly params?: any;
}

/** As the stepper reports what the public transition lists. */
function requestOf({ type, params }: PublicAction): EffectRequest[] {
  if (type === 'xstate.raise') {
    const { id, delay } = params;
    return delay === undefined ? [] : [{ type: 'timer.start', params: { timer: id, delayMs: delay } }];
  }
  if (type === 'xstate.cancel') return [{ type: 'timer.cancel', params: { timer: params.sendId } }];
  return [params === undefined ? { type } : { type, params }];
}

type Answer = Pick<Step, 'value' | 'context' | 'effects' | 'done'>;

/** Compares as the log would, which keeps no field that is undefined and turns NaN, which nonsense leads to, into null. */
function same(a: Answer, b: Answer): boolean {
  return (
    a.done === b.done && alike(a.value, b.value) && alike(a.context, b.context) && alike(a.effects, b.effects)
  );
}

function alike(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return isNothing(a) && isNothing(b);
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => alike(item ?? null, b[index] ?? null));
  }
  const one = a as Record<string, unknown>;
  const other = b as Record<string, unknown>;
  let fields = 0;
  for (const key of Object.keys(one)) {
    if (one[key] === undefined) continue;
    if (!Object.hasOwn(other, key) || other[key] === undefined || !alike(one[key], other[key])) return false;
    fields += 1;
  }
  for (const key of Object.keys(other)) if (other[key] !== undefined) fields -= 1;
  return fields === 0;
}

/** What JSON writes as null. */
const isNothing = (value: unknown) =>
  value === null || (typeof value === 'number' && !Number.isFinite(value));

/** @returns the path of the first value that JSON cannot carry; a field that is `undefined` counts as left out */
function notPlain(value: unknown, path: string, lenient: boolean): string | undefined {
  if (value === null || typeof value === 'number')
    return lenient || Number.isFinite(value) ? undefined : path;
  if (typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value !== 'object') return path;
  const prototype = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return path;
  for (const [key, item] of Object.entries(value)) {
    const inner = item === undefined ? undefined : notPlain(item, `${path}.${key}`, lenient);
    if (inner) return inner;
  }
  return undefined;
}

/** Every value inside, and the whole: what a random event's field may hold. */
function leaves(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  if (typeof value !== 'object') return [value];
  return [value, ...Object.values(value).flatMap(leaves)];
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}
