import { isObject } from './json.ts';

/**
 * One text for one JSON value: keys sorted, `undefined` fields left out. Two values that `jsonEqual` calls equal
 * have the same text.
 *
 * @throws TypeError the value is not JSON (a cycle, a bigint, a bare `undefined`)
 */
export function canonicalJson(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_key, part: unknown) => (isObject(part) ? sorted(part) : part));
  } catch (error) {
    // Every level is a copy, so JSON.stringify does not meet the same object again on a cycle.
    if (error instanceof RangeError) throw new TypeError('not a JSON value: nested without end');
    throw error;
  }
}

/** `fromEntries` defines properties, so that a key named `__proto__` stays a key. */
function sorted(object: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(object);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}
