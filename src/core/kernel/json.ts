import { KernelError } from './errors/kernel-error.ts';

/** Plain data, as it comes back from `JSON.parse`. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** @returns whether a value is a plain object: not null, not an array */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns whether a value is such as `JSON.parse` gives; numbers are finite */
export function isJson(value: unknown): value is Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  return isObject(value) && isPlain(value) && Object.values(value).every(isJson);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether JSON is nested deeper than so many levels; counts brackets outside of strings, before a parser allocates anything for them. */
export function nestsDeeper(text: string, levels: number): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === BACKSLASH) index += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > levels) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}

/**
 * The JSON merge patch (RFC 7396) that turns one context into the next, or `undefined` when they are equal.
 * Unchanged parts that are the same object are not walked, so the cost follows the change.
 *
 * A merge patch cannot say "this field is null", so contexts hold none.
 *
 * @throws HF_MACHINE_CONTEXT a context holds null, a function, a Date, or anything else that is not plain data
 */
export function diffContext(from: unknown, to: unknown): JsonObject | undefined {
  if (from === to) return undefined;
  const before = isObject(from) ? from : {};
  if (!isObject(to)) throw new KernelError('HF_MACHINE_CONTEXT', { path: 'context' });
  return diffObject(before, to, 'context');
}

function diffObject(
  from: Record<string, unknown>,
  to: Record<string, unknown>,
  path: string,
): JsonObject | undefined {
  const patch: Record<string, Json> = {};
  let changed = false;
  let shared = 0;
  for (const key of Object.keys(to)) {
    const next = to[key];
    if (next === undefined) continue;
    const previous = own(from, key);
    if (previous !== undefined) shared += 1;
    if (next === previous) continue;
    const value = change(previous, next, path, key);
    if (value === undefined) continue;
    patch[key] = value;
    changed = true;
  }
  const keys = Object.keys(from);
  if (shared < keys.length) {
    for (const key of keys) {
      if (from[key] === undefined || own(to, key) !== undefined) continue;
      patch[key] = null;
      changed = true;
    }
  }
  return changed ? patch : undefined;
}

/** @returns what the patch says of a field that is not the same value any more; undefined when it is equal */
function change(previous: unknown, next: unknown, path: string, key: string): Json | undefined {
  if (typeof next === 'string') return next;
  if (isObject(next) && isPlain(next) && isObject(previous))
    return diffObject(previous, next, `${path}.${key}`);
  return jsonEqual(previous, next) ? undefined : plain(next, `${path}.${key}`);
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function plain(value: unknown, path: string): Json {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map((item, index) => plain(item, `${path}[${index}]`));
  if (isObject(value) && isPlain(value)) {
    const copy: Record<string, Json> = {};
    for (const [key, item] of Object.entries(value)) {
      if (item !== undefined) copy[key] = plain(item, `${path}.${key}`);
    }
    return copy;
  }
  throw new KernelError('HF_MACHINE_CONTEXT', { path });
}

/** Applies a JSON merge patch (RFC 7396) without changing its input. */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json> = isObject(target) ? { ...(target as JsonObject) } : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key] as Json;
    if (key === '__proto__') continue; // a patch may come from a foreign file
    if (value === null) delete result[key];
    else if (typeof value !== 'object') result[key] = value;
    else result[key] = applyMergePatch(result[key], value);
  }
  return result;
}

/** Deep equality of JSON data; the order of keys does not count, `undefined` fields count as absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  for (const key of Object.keys(a)) if (!jsonEqual(a[key], own(b, key))) return false;
  for (const key of Object.keys(b)) if (b[key] !== undefined && own(a, key) === undefined) return false;
  return true;
}

/**
 * A field of the object itself. Keys come from outside, and every object inherits fields such as `toString` and
 * `constructor`: they are functions or the prototype, and plain data is neither.
 */
function own(object: Record<string, unknown>, key: string): unknown {
  const value = object[key];
  return typeof value === 'function' || value === Object.prototype ? undefined : value;
}

/** @returns whether objects and arrays are nested in more than so many levels; never walks deeper than that */
export function nestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => nestedDeeper(item, levels - 1));
}

/**
 * A copy of a value as JSON will keep it: what a machine decides on live is then what replay will read.
 *
 * @param path names the value in the error
 * @throws HF_EVENT_INVALID it holds something that is not plain data: a Date, NaN, a bigint, a function
 */
export function toPlain(value: unknown, path: string): Json {
  const copy = plainCopy(value);
  if (copy !== undefined) return copy;
  const culprit = notPlain(value, path) ?? { path, value };
  throw new KernelError('HF_EVENT_INVALID', {
    path: culprit.path,
    reason: `it holds a ${kindOf(culprit.value)}`,
  });
}

/** Every event and effect passes here, so the place of a failure is searched only after one. */
function plainCopy(value: unknown): Json | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined; // -0 becomes 0
  if (Array.isArray(value)) return copyOfList(value);
  if (!isObject(value) || !isPlain(value)) return undefined;
  const copy: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === undefined) continue;
    const kept = plainCopy(item);
    if (kept === undefined) return undefined;
    copy[key] = kept;
  }
  return copy;
}

function copyOfList(list: readonly unknown[]): Json | undefined {
  const copy: Json[] = [];
  for (const item of list) {
    const kept = plainCopy(item ?? null);
    if (kept === undefined) return undefined;
    copy.push(kept);
  }
  return copy;
}

/** The first part of a value that is not plain data, and where it is. */
function notPlain(value: unknown, path: string): { path: string; value: unknown } | undefined {
  if (isJson(value)) return undefined;
  const inner = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${index}]`, item ?? null] as const)
    : isObject(value) && isPlain(value)
      ? Object.entries(value).map(([key, item]) => [`${path}.${key}`, item ?? null] as const)
      : [];
  for (const [place, item] of inner) {
    const culprit = notPlain(item, place);
    if (culprit) return culprit;
  }
  return inner.length > 0 ? undefined : { path, value };
}

function kindOf(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'object' ? (value?.constructor?.name ?? 'strange object') : typeof value;
}
