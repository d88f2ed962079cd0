import { z } from 'zod';
import type { HoldfastError } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { applyMergePatch, isObject, type Json, jsonEqual } from '../json.ts';
import type { LogEvent } from '../log/record.ts';

/** A change of the recorded history that is tried out (C8). */
export type Change =
  | { readonly kind: 'drop'; readonly seq: number }
  | {
      readonly kind: 'set';
      readonly seq: number;
      readonly event: (recorded: LogEvent) => LogEvent;
      /** What the patch names and the recorded event does not have: meant to be added, or misspelt. */
      readonly absent: (recorded: LogEvent) => readonly string[];
    }
  | ({ readonly kind: 'insert' } & Inserted);

/** An event that nobody recorded. */
export interface Inserted {
  /** The record behind which it comes; 0 for the very first. */
  readonly after: number;
  readonly actor: string;
  readonly event: LogEvent;
  /** Epoch milliseconds; the time of the record before unless given. */
  readonly at?: number | undefined;
}

const insertedSchema = z.strictObject({
  after: z.int().nonnegative(),
  actor: z.string().regex(/^[^/]+\/.+/, 'an address such as lamp.bulb/hall'),
  event: z.looseObject({ type: z.string().min(1) }),
  at: z.int().nonnegative().optional(),
});

const operationSchema = z.discriminatedUnion('op', [
  z.object({ op: z.enum(['add', 'replace', 'test']), path: z.string(), value: z.json() }),
  z.object({ op: z.literal('remove'), path: z.string() }),
]);
type Operation = z.infer<typeof operationSchema>;

/**
 * An event altered by a patch: a list of operations is a JSON patch (RFC 6902: add, replace, remove, test), an object
 * a merge patch (RFC 7396).
 *
 * @throws HF_REPLAY_CHANGE the patch is none, does not fit the event, or leaves no event
 */
export function alterEvent(patch: unknown, seq: number): Change {
  const operations = Array.isArray(patch) ? z.array(operationSchema).safeParse(patch) : undefined;
  if (operations?.error || (!operations && !isObject(patch))) {
    const issue = operations?.error?.issues[0];
    throw refused(`the patch for record ${seq} is no JSON patch${issue ? `: ${issue.message}` : ''}`);
  }
  const event = (recorded: LogEvent): LogEvent => {
    const altered = operations
      ? operations.data.reduce<Json>((value, operation) => applied(value, operation, seq), recorded)
      : applyMergePatch(recorded, patch as Json);
    if (!isObject(altered) || typeof altered.type !== 'string') {
      throw refused(`the patch for record ${seq} leaves no event with a type`);
    }
    return altered as LogEvent;
  };
  // An operation says itself whether it adds.
  return { kind: 'set', seq, event, absent: (recorded) => (operations ? [] : absentIn(recorded, patch)) };
}

/** @returns paths such as `terms.rpmLimit`, each only as deep as something is missing */
function absentIn(recorded: unknown, patch: unknown, at = ''): string[] {
  if (!isObject(patch) || !isObject(recorded)) return [];
  return Object.entries(patch).flatMap(([name, value]) => {
    const path = at === '' ? name : `${at}.${name}`;
    return Object.hasOwn(recorded, name) ? absentIn(recorded[name], value, path) : [path];
  });
}

/**
 * Events to insert, a JSON line each: `{"after": 120, "actor": "lamp.bulb/hall", "event": {"type": "COMMIT"}}`.
 *
 * @throws HF_REPLAY_CHANGE naming the line
 */
export function parseInserted(text: string): Change[] {
  return text.split('\n').flatMap((line, index): Change[] => {
    if (line.trim() === '') return [];
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw refused(`line ${index + 1} of the events to insert is not JSON`);
    }
    const { data, error } = insertedSchema.safeParse(value);
    if (data) return [{ kind: 'insert', ...data, event: data.event as LogEvent }];
    const issue = error.issues[0];
    throw refused(`line ${index + 1} of the events to insert, ${issue?.path.join('.')}: ${issue?.message}`);
  });
}

function applied(value: Json, operation: Operation, seq: number): Json {
  const keys = operation.path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (keys.includes('__proto__')) throw refused(`the patch for record ${seq} names __proto__`);
  const last = keys.pop();
  if (last === undefined) {
    if (operation.op === 'test' || operation.op === 'remove')
      throw refused('a patch of the whole event only replaces it');
    return operation.value as Json;
  }
  const copy = structuredClone(value) as Json;
  let inner: unknown = copy;
  for (const key of keys)
    inner = Array.isArray(inner) ? inner[Number(key)] : isObject(inner) ? inner[key] : undefined;
  const missing = () =>
    refused(`the patch for record ${seq} names ${operation.path}, which the event has not`);
  if (Array.isArray(inner)) {
    const at = last === '-' ? inner.length : /^\d+$/.test(last) ? Number(last) : Number.NaN;
    const most = operation.op === 'add' ? inner.length : inner.length - 1;
    if (!(at <= most)) throw missing();
    if (operation.op === 'test') {
      if (!jsonEqual(inner[at], operation.value)) throw missing();
    } else if (operation.op === 'remove') inner.splice(at, 1);
    else inner.splice(at, operation.op === 'add' ? 0 : 1, operation.value);
    return copy;
  }
  if (!isObject(inner) || (operation.op !== 'add' && !Object.hasOwn(inner, last))) throw missing();
  if (operation.op === 'remove') delete inner[last];
  else if (operation.op !== 'test') inner[last] = operation.value;
  else if (!jsonEqual(inner[last], operation.value)) throw missing();
  return copy;
}

function refused(reason: string): HoldfastError {
  return new KernelError('HF_REPLAY_CHANGE', { reason });
}
