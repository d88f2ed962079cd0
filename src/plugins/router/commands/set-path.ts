import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { nearest } from '../../../core/host/config/problem.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { interfacesOf } from '../config/network-config.ts';
import { leavesOf } from './leaves.ts';

/**
 * Sets one field of a config: `interface.vlan.eth1.40.ipv4=10.0.0.1/24`, or by JSON pointer
 * `/interface/vlan/eth1.40/ipv4=…`. Keys that hold dots are recognised where the config has them, and so are the
 * names of interfaces. The value is JSON, or else the text itself.
 *
 * @returns a changed copy
 * @throws HF_CLI_USAGE there is no such place, or a secret was given, which must not be in an argument list
 */
export function setPath(config: NetworkConfig, assignment: string, command: string): NetworkConfig {
  const equals = assignment.indexOf('=');
  if (equals < 1) usage(`--set takes path=value, not ${assignment}.`, command);
  const path = pathIn(config, assignment.slice(0, equals), command);
  if (!assignment.startsWith('/')) refuseInvented(config, path, command);
  const changed = put(config, path, parsed(assignment.slice(equals + 1)), command) as NetworkConfig;
  const before = new Set(leavesOf(config).map(({ path, value }) => JSON.stringify([path, value])));
  for (const leaf of leavesOf(changed)) {
    if (leaf.secret && !before.has(JSON.stringify([leaf.path, leaf.value])))
      usage(`${path.join('.')} is a secret: an argument list is no place for it, use --edit.`, command);
  }
  return changed;
}

/**
 * A typing error must not store a section without effect, or a device that does not exist: everything above the last key
 * must be there already, or be a section for an existing interface. A JSON pointer is taken literally.
 */
function refuseInvented(config: NetworkConfig, path: readonly string[], command: string): void {
  const interfaces = new Set(interfacesOf(config).map(({ name }) => name));
  path.forEach((key, depth) => {
    const above = path.slice(0, depth);
    const isLast = depth === path.length - 1 && depth > 0;
    const isSection = depth > 0 && above[0] !== 'interface' && interfaces.has(key);
    if (isLast || isSection || has(config, [...above, key])) return;
    const place = above.length === 0 ? 'The active config' : above.join('.');
    const there = Object.keys((above.reduce<unknown>(childOf, config) ?? {}) as object);
    usage(
      `${place} has no ${key}; it has ${there.slice(0, 12).join(', ')}.${suggestion(path.slice(depth), there)}`,
      command,
    );
  });
}

/** Suggests the key that is nearest to the first given one, or to the first two where keys hold a dot: `eth1`, `11`. */
function suggestion([key = '', next = '']: readonly string[], there: readonly string[]): string {
  const holdsDot = there.some((name) => name.startsWith(`${key}.`));
  return nearest(holdsDot ? `${key}.${next}` : key, there);
}

/** @throws HF_CLI_USAGE nothing is there */
export function unsetPath(config: NetworkConfig, text: string, command: string): NetworkConfig {
  const path = pathIn(config, text, command);
  if (!has(config, path)) {
    const depth = path.findIndex((_, index) => !has(config, path.slice(0, index + 1)));
    const above = path.slice(0, depth).reduce<unknown>(childOf, config);
    const guess = suggestion(path.slice(depth), Object.keys(isObject(above) ? above : {}));
    usage(`The active config has nothing at ${text}.${guess}`, command);
  }
  return put(config, path, undefined, command) as NetworkConfig;
}

/** The keys that a path names. A dot may separate keys or be part of one: the longest existing key is used. */
function pathIn(config: NetworkConfig, text: string, command: string): string[] {
  if (text.startsWith('/')) {
    return text
      .slice(1)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  const interfaces = interfacesOf(config).map(({ name }) => name);
  const path: string[] = [];
  let at: unknown = config;
  let rest = text;
  while (rest !== '') {
    const keys = Array.isArray(at)
      ? at.map((_, index) => String(index))
      : Object.keys(isObject(at) ? at : {});
    const starts = (key: string) => key !== '' && (rest === key || rest.startsWith(`${key}.`));
    const longest = (names: readonly string[]) => names.filter(starts).sort((a, b) => b.length - a.length)[0];
    const key = longest(keys) ?? longest(interfaces) ?? rest.split('.', 1)[0] ?? '';
    if (key === '') usage(`${text} is no path: a part of it is empty.`, command);
    path.push(key);
    rest = rest.slice(key.length + 1);
    at = childOf(at, key);
  }
  return path;
}

function put(at: unknown, path: readonly string[], value: unknown, command: string): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const inner = put(childOf(at, key), rest, value, command);
  if (Array.isArray(at)) {
    const index = Number(key);
    if (!Number.isInteger(index) || index < 0 || index > at.length)
      usage(`${key} is no place in a list of ${at.length}.`, command);
    return inner === undefined ? at.toSpliced(index, 1) : at.toSpliced(index, 1, inner);
  }
  if (at !== undefined && !isObject(at)) usage(`There is a plain value above ${path.join('.')}.`, command);
  const entries = Object.entries(at ?? {});
  if (inner === undefined) return Object.fromEntries(entries.filter(([name]) => name !== key));
  const exists = entries.some(([name]) => name === key);
  const changed = entries.map(([name, item]) => [name, name === key ? inner : item] as const);
  return Object.fromEntries(exists ? changed : [...entries, [key, inner] as const]);
}

function has(config: unknown, path: readonly string[]): boolean {
  return path.reduce<unknown>(childOf, config) !== undefined;
}

function childOf(at: unknown, key: string): unknown {
  if (Array.isArray(at)) return at[Number(key)];
  return isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function usage(reason: string, command: string): never {
  throw new HostError('HF_CLI_USAGE', { reason, command });
}
