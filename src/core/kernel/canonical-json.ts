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

/** Sorted first: JSON.stringify with a function that sorts takes twice as long. */
function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(sorted(value));
  } catch (error) {
    if (error instanceof RangeError) throw new TypeError('not a JSON value: nested without end');
    throw error;
  }
}

/** `fromEntries` defines properties, so that a key named `__proto__` stays a key. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value) || typeof value.toJSON === 'function') return value; // a Date becomes a text
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}
