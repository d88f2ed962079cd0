/**
 * Filters of points in the real store's language. A part of it is supported, with the same result as there; anything else
 * is refused by its own name, because a condition that is misread would only seem to match nothing.
 */
import { z } from 'zod';
import { isObject } from '../../../core/kernel/json.ts';
import { type Id, ids } from './ids.ts';

type Scalar = string | number | boolean;

/** A step into a payload: the value of a key, an element of a list by its index, or every element. */
type Step = { readonly key: string } | { readonly index: number } | 'every';

export type Condition =
  | { readonly ids: ReadonlySet<Id> }
  | { readonly path: readonly Step[]; readonly values: ReadonlySet<Scalar> }
  | { readonly filter: Filter };

export interface Filter {
  readonly must: readonly Condition[];
  readonly should: readonly Condition[];
  readonly mustNot: readonly Condition[];
}

const CLAUSES = ['must', 'should', 'must_not'] as const;
const MOST_CONDITIONS = 100;
const MOST_VALUES = 1_000;
const LONGEST_KEY = 256;
const SUPPORTED =
  'this store supports `must`, `should` and `must_not` of `has_id` and `match` (`value`, `any`)';

/** What is wrong with a filter, and where. */
class Refusal extends Error {
  readonly path: readonly PropertyKey[];

  constructor(path: readonly PropertyKey[], reason: string) {
    super(reason);
    this.path = path;
  }
}

/** A filter in a request's body; null and nothing filter nothing. */
const given = z.unknown().transform((value, context): Filter | undefined => {
  if (value === null) return undefined;
  try {
    return readFilter(value, []);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    context.addIssue({ code: 'custom', path: [...error.path], message: error.message });
    return z.NEVER;
  }
});
export const filter = given.optional();

function readFilter(value: unknown, path: readonly PropertyKey[]): Filter {
  const { must, should, must_not, ...unknown } = objectAt(value, path, 'a filter is an object');
  const [other] = Object.keys(unknown);
  if (other !== undefined) throw new Refusal(path, `\`${other}\` is not supported: ${SUPPORTED}`);
  return {
    must: readConditions(must, [...path, 'must']),
    should: readConditions(should, [...path, 'should']),
    mustNot: readConditions(must_not, [...path, 'must_not']),
  };
}

function readConditions(value: unknown, path: readonly PropertyKey[]): readonly Condition[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) return [readCondition(value, path)];
  if (value.length > MOST_CONDITIONS)
    throw new Refusal(path, `it has more than ${MOST_CONDITIONS} conditions`);
  return value.map((one, index) => readCondition(one, [...path, index]));
}

function readCondition(value: unknown, path: readonly PropertyKey[]): Condition {
  const given = objectAt(value, path, 'a condition is an object');
  if (CLAUSES.some((clause) => clause in given)) return { filter: readFilter(given, path) };
  const { has_id, key, match, ...unknown } = given;
  const [other] = Object.keys(unknown);
  if (other !== undefined) throw new Refusal(path, `condition \`${other}\` is not supported: ${SUPPORTED}`);
  if (has_id !== undefined) {
    if (key !== undefined || match !== undefined) {
      throw new Refusal(path, '`has_id` stands alone in a condition');
    }
    const read = ids.safeParse(has_id);
    if (!read.success) throw new Refusal([...path, 'has_id'], 'it is a list of point ids: numbers and UUIDs');
    return { ids: new Set(read.data) };
  }
  if (typeof key !== 'string')
    throw new Refusal([...path, 'key'], 'a condition names the payload key it is for');
  return { path: readKey(key, [...path, 'key']), values: readMatch(match, [...path, 'match']) };
}

function readMatch(value: unknown, path: readonly PropertyKey[]): ReadonlySet<Scalar> {
  const match = objectAt(value, path, `it is missing: ${SUPPORTED}`);
  const [kind, ...others] = Object.keys(match);
  if (others.length > 0) throw new Refusal(path, `it has both \`${kind}\` and \`${others[0]}\``);
  if (kind !== 'value' && kind !== 'any') {
    const reason = kind === undefined ? 'it is empty' : `match \`${kind}\` is not supported`;
    throw new Refusal(path, `${reason}: ${SUPPORTED}`);
  }
  const values: unknown = kind === 'any' ? match.any : [match.value];
  if (!Array.isArray(values) || !values.every(isScalar)) {
    throw new Refusal(
      [...path, kind],
      `\`${kind}\` takes ${kind === 'any' ? 'a list of texts, numbers or booleans' : 'a text, a number or a boolean'}`,
    );
  }
  for (const one of values) {
    const reason = typeof one === 'number' && unmatchable(one);
    if (reason) throw new Refusal([...path, kind], reason);
  }
  if (values.length > MOST_VALUES)
    throw new Refusal([...path, kind], `it has more than ${MOST_VALUES} values`);
  return new Set(values);
}

/** Why a number cannot be matched: the real store matches whole numbers, and JSON is read here with 53 bits of them. */
function unmatchable(value: number): string | undefined {
  if (!Number.isInteger(value)) return 'a number to match has no fraction; a `range` is not supported';
  if (Number.isSafeInteger(value)) return undefined;
  return 'whole numbers beyond ±(2^53 − 1) are not compared exactly by this store';
}

/** A step: `name`, `"quoted name"`, `[3]` or `[]`. */
const STEP = /"([^"]*)"|\[(\d{0,9})\]|([^.[\]"]+)/y;

/** The steps of a key such as `a.b`, `list[].k`, `list[0]` or `"a.b".c`. */
function readKey(key: string, at: readonly PropertyKey[]): readonly Step[] {
  if (key.length > LONGEST_KEY) throw new Refusal(at, `a key has at most ${LONGEST_KEY} characters`);
  const steps: Step[] = [];
  let place = 0;
  while (place < key.length || steps.length === 0) {
    STEP.lastIndex = place;
    const [text, quoted, index, plain] = STEP.exec(key) ?? [];
    if (text === undefined || (steps.length === 0 && index !== undefined)) malformed(key, at);
    const name = quoted ?? plain;
    if (name !== undefined) steps.push({ key: name });
    else steps.push(index === '' ? 'every' : { index: Number(index) });
    place += text.length;
    if (key[place] === '.' && key[place + 1] !== '[' && place + 1 < key.length) place += 1;
    else if (place < key.length && key[place] !== '[') malformed(key, at);
  }
  return steps;
}

function malformed(key: string, at: readonly PropertyKey[]): never {
  throw new Refusal(at, `\`${key}\` is no path into a payload, such as a.b, list[].k, list[0] or "a.b"`);
}

function objectAt(value: unknown, path: readonly PropertyKey[], otherwise: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new Refusal(path, otherwise);
}

const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/**
 * Whether a point passes: all of `must`, none of `must_not`, and one of `should` where there are any.
 *
 * @param payload reads the point's payload, once at most
 */
export function passes(by: Filter, id: Id, payload: () => unknown): boolean {
  let read: { readonly value: unknown } | undefined;
  const holds = (condition: Condition): boolean => {
    if ('ids' in condition) return condition.ids.has(id);
    read ??= { value: payload() };
    const { value } = read;
    if ('filter' in condition) return passes(condition.filter, id, () => value);
    return valuesAt(value, condition.path).some((one) => isScalar(one) && condition.values.has(one));
  };
  const { must, should, mustNot } = by;
  return must.every(holds) && !mustNot.some(holds) && (should.length === 0 || should.some(holds));
}

/** The values at the end of a path; of a list there, its elements. A list on the way is entered by `[]` or an index only. */
function valuesAt(payload: unknown, path: readonly Step[]): readonly unknown[] {
  let values: readonly unknown[] = [payload];
  for (const step of path) values = values.flatMap((value) => stepInto(value, step));
  return values.flatMap((value) => (Array.isArray(value) ? value : [value]));
}

function stepInto(value: unknown, step: Step): readonly unknown[] {
  if (step === 'every') return Array.isArray(value) ? value : [];
  if ('index' in step) return Array.isArray(value) && step.index < value.length ? [value[step.index]] : [];
  // Own keys only: a payload has no key `toString` unless it was stored.
  return isObject(value) && Object.hasOwn(value, step.key) ? [value[step.key]] : [];
}
