/** Fields of the router's config that are held to a value: how they are read, put in, and which are never touched (R24). */
import type { NetworkConfig } from '../../core/contracts/router.ts';
import {
  isSecretField,
  isSecretName,
  isSecretPart,
  scopeInside,
} from '../../core/host/logging/secret-fields.ts';
import { canonicalJson } from '../../core/kernel/canonical-json.ts';
import { isObject, jsonEqual } from '../../core/kernel/json.ts';
import type { KeptField } from '../../machines/reconciler/leg-shapes.ts';
import { isNeverTouched, type LegAddress, type LegReading, readLeg, withAddresses } from './legs.ts';

/** The scope of a whole network config, in which the router's plugins declare what is secret. */
const NETWORK_CONFIG = 'networkconfig';

/** One kept field in a config. */
export type FieldReading =
  | { readonly state: 'held' | 'differs' }
  /** The object that would hold it is not there. */
  | { readonly state: 'absent' }
  | { readonly state: 'refused'; readonly reason: string };

/** Reads one field from an active config. @param never interfaces that are never touched, besides those named so */
export function readField(config: NetworkConfig, field: KeptField, never: readonly string[]): FieldReading {
  const objects = objectsAlong(config, field.path);
  const parent = objects.at(-1);
  if (!parent || objects.length < field.path.length) return { state: 'absent' };
  const present = ownField(parent, field.path.at(-1) ?? '');
  const reason = refusal(field, objects, present, [...never, ...namedNever(config)]);
  if (reason !== undefined) return { state: 'refused', reason };
  return { state: isHeld(field, present) ? 'held' : 'differs' };
}

/**
 * The config with one field put in, and no other change. A list that must only contain entries gets those that it lacks,
 * behind the others. No object is created for it.
 *
 * @param config is not changed; it is returned as it is where nothing is to be put in
 */
export function withField(config: NetworkConfig, field: KeptField, never: readonly string[]): NetworkConfig {
  if (readField(config, field, never).state !== 'differs') return config;
  const put = (object: Record<string, unknown>, [key = '', ...rest]: readonly string[]) => {
    const below = ownField(object, key);
    const changed: unknown = rest.length > 0 && isObject(below) ? put(below, rest) : valueFor(field, below);
    // As an entry, so that a key named `__proto__` stays a key.
    const entries = Object.entries(object).map(
      ([name, value]) => [name, name === key ? changed : value] as const,
    );
    return Object.fromEntries(Object.hasOwn(object, key) ? entries : [...entries, [key, changed] as const]);
  };
  return put(config, field.path);
}

/**
 * Reads a leg, or a kept field as if it were one: its value stands in the place of the address, and only when it is there,
 * so that nothing else of the config is recorded.
 *
 * @param never interfaces that are never touched
 */
export function readHeld(
  config: NetworkConfig,
  { intf, keep }: Pick<LegAddress, 'intf' | 'keep'>,
  never: readonly string[],
): LegReading {
  const leg = readLeg(config, intf);
  if (!keep) return leg;
  const { ncid } = leg;
  const reading = readField(config, keep, never);
  switch (reading.state) {
    case 'absent':
      return { ncid, addresses: undefined };
    case 'refused':
      return { ncid, addresses: [], refusedName: reading.reason };
    case 'held':
      return { ncid, addresses: [canonicalJson(keep.value)] };
    case 'differs':
      return { ncid, addresses: [] };
  }
}

/** `withAddresses` for legs and kept fields: one config to post for all of them. @param never interfaces that are never touched */
export function withHeld(
  config: NetworkConfig,
  legs: readonly LegAddress[],
  never: readonly string[],
): ReturnType<typeof withAddresses> {
  const start = withAddresses(
    config,
    legs.filter(({ keep }) => !keep),
  );
  const refused = new Map(start.refused);
  const added = [...start.added];
  let { body } = start;
  for (const leg of legs) {
    if (!leg.keep) continue;
    const reading = readField(body, leg.keep, never);
    if (reading.state === 'refused') refused.set(leg.intf, reading.reason);
    if (reading.state !== 'differs') continue;
    body = withField(body, leg.keep, never);
    added.push(leg);
  }
  return { body, added, refused };
}

function valueFor({ value, match }: KeptField, present: unknown): unknown {
  if (match === 'equals' || !Array.isArray(value)) return value;
  const entries: readonly unknown[] = Array.isArray(present) ? present : [];
  return [...entries, ...value.filter((wanted) => !entries.some((entry) => jsonEqual(entry, wanted)))];
}

function isHeld({ value, match }: KeptField, present: unknown): boolean {
  if (match === 'equals') return jsonEqual(present, value);
  return (
    Array.isArray(present) &&
    Array.isArray(value) &&
    value.every((wanted) => present.some((entry) => jsonEqual(entry, wanted)))
  );
}

/** The objects from the root to the one that holds the field; fewer where one of them is not there. */
function objectsAlong(config: NetworkConfig, path: readonly string[]): Record<string, unknown>[] {
  const objects: Record<string, unknown>[] = [config];
  for (const key of path.slice(0, -1)) {
    const next = ownField(objects.at(-1) ?? {}, key);
    if (!isObject(next)) break;
    objects.push(next);
  }
  return objects;
}

function ownField(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function refusal(
  field: KeptField,
  objects: readonly Record<string, unknown>[],
  present: unknown,
  never: readonly string[],
): string | undefined {
  const { path, value, match } = field;
  const replaced = match === 'equals' ? [present] : [];
  // Sections, and the kinds of interfaces in one, belong to no network; what is below them may.
  const around = objects.slice(2).flatMap((object) => [ownTexts(object), metaName(object)]);
  const network = networkIn([path, value, ...replaced, ...around], never);
  if (network !== undefined) return `it belongs to ${network}, which is never touched`;
  if (replaced.some((old) => holdsSecret(path, old))) return 'what it would replace holds a secret';
  const isEmpty = present === undefined || present === null || present === '';
  if (match === 'contains' && !isEmpty && !Array.isArray(present)) return 'the config has no list there';
  return undefined;
}

/** Texts of an object itself, such as the interface of a route. */
function ownTexts(object: Record<string, unknown>): unknown[] {
  return Object.values(object).filter(
    (value) =>
      typeof value === 'string' || (Array.isArray(value) && value.every((item) => typeof item === 'string')),
  );
}

function metaName({ meta }: Record<string, unknown>): unknown {
  return isObject(meta) ? meta.name : undefined;
}

/** Interfaces to which the config gives the name of a network that is never touched. */
function namedNever({ interface: interfaces }: NetworkConfig): string[] {
  const kinds = isObject(interfaces) ? Object.values(interfaces).filter(isObject) : [];
  return kinds.flatMap((kind) =>
    Object.entries(kind).flatMap(([intf, entry]) => {
      const name = isObject(entry) ? metaName(entry) : undefined;
      return typeof name === 'string' && isNeverTouched(name) ? [intf] : [];
    }),
  );
}

/**
 * The network that is never touched and that keys or texts of a value name, by its name or its interface: `eth1.30`, and in
 * a longer key too (`eth1.30_eth0`).
 */
export function networkIn(value: unknown, never: readonly string[]): string | undefined {
  if (typeof value === 'string')
    return isNeverTouched(value) ? value.trim() : never.find((intf) => mentions(value, intf));
  if (Array.isArray(value)) return firstOf(value, (item) => networkIn(item, never));
  if (!isObject(value)) return undefined;
  return firstOf(Object.entries(value), ([key, field]) => networkIn(key, never) ?? networkIn(field, never));
}

function firstOf<T>(items: readonly T[], of: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = of(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether a text has an interface's name in it, and not only one that begins or ends in the same way. */
function mentions(text: string, intf: string): boolean {
  const isPartOfName = (char: string | undefined) => char !== undefined && /[A-Za-z0-9.]/.test(char);
  for (let at = text.indexOf(intf); intf !== '' && at >= 0; at = text.indexOf(intf, at + 1))
    if (!isPartOfName(text[at - 1]) && !isPartOfName(text[at + intf.length])) return true;
  return false;
}

/** Whether the path leads to a secret, or the value holds one, by the rules of redaction. */
export function holdsSecret(path: readonly string[], value: unknown): boolean {
  if (path.some((key) => isSecretName(key) || isSecretPart(key))) return true;
  const whole = path.reduceRight<unknown>((inner, key) => Object.fromEntries([[key, inner]]), value);
  const walk = (part: unknown, scope: string | undefined): boolean => {
    if (Array.isArray(part)) return part.some((item) => walk(item, scope));
    if (!isObject(part)) return false;
    return Object.entries(part).some(
      ([key, field]) => isSecretField(scope, part, key) || walk(field, scopeInside(scope, key)),
    );
  };
  return walk(whole, NETWORK_CONFIG);
}
