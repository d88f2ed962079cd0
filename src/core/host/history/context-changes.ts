import { isObject, type Json, jsonEqual } from '../../kernel/json.ts';

/** One value of a context that changed; `from` or `to` is absent where there was or is none. */
export interface ContextChange {
  /** E.g. `legs["eth1.20"].since`. */
  readonly path: string;
  readonly from?: Json;
  readonly to?: Json;
}

/** So many changes are listed. */
const MOST = 200;

/** The values that differ between two contexts. Lists are compared as a whole. */
export function contextChanges(before: Json | undefined, after: Json | undefined): ContextChange[] {
  const changes: ContextChange[] = [];
  collect(before, after, '', changes);
  return changes;
}

function collect(
  before: Json | undefined,
  after: Json | undefined,
  path: string,
  changes: ContextChange[],
): void {
  if (changes.length >= MOST || before === after) return;
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = (of: object) =>
        Object.hasOwn(of, key) ? (of as Readonly<Record<string, Json>>)[key] : undefined;
      collect(inner(before), inner(after), joined(path, key), changes);
    }
    return;
  }
  if (jsonEqual(before, after)) return;
  changes.push({
    path,
    ...(before !== undefined && { from: before }),
    ...(after !== undefined && { to: after }),
  });
}

function joined(path: string, key: string): string {
  if (!/^[A-Za-z_]\w*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

/** One name of a path: `.name`, or `["any name"]`. */
const NAME = /^(?:\.?([A-Za-z_]\w*)|\[("(?:[^"\\]|\\.)*")\])/;

/** @returns the names of a path as `ContextChange` has it; undefined where it is none */
export function namesOf(path: string): string[] | undefined {
  const names: string[] = [];
  for (let rest = path; rest !== ''; ) {
    const [whole = '', plain, quoted] = NAME.exec(rest) ?? [];
    if (whole === '') return undefined;
    try {
      names.push(plain ?? (JSON.parse(quoted ?? '') as string));
    } catch {
      return undefined;
    }
    rest = rest.slice(whole.length);
  }
  return names;
}

/** The value at a path; of a list by the number of its place. */
export function valueAt(context: Json | undefined, names: readonly string[]): Json | undefined {
  let value: Json | undefined = context;
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, Json>>)[name];
  }
  return value;
}

/** Whether a merge patch of a context can change what is at a path. */
export function touches(patch: Json | undefined, names: readonly string[]): boolean {
  let inner: Json | undefined = patch;
  for (const name of names) {
    if (!isObject(inner)) return inner !== undefined;
    if (!Object.hasOwn(inner, name)) return false;
    inner = (inner as Readonly<Record<string, Json>>)[name];
  }
  return inner !== undefined;
}
