import { createSecretKey, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { maskText, REDACTED } from '../../../core/host/logging/mask-text.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { openVault, Vault } from '../../../core/host/secrets/vault.ts';
import { jsonText, plainText } from '../../../core/host/terminal.ts';
import { FINGERPRINT_PREFIX } from '../../../core/kernel/ids.ts';
import { isObject, jsonEqual } from '../../../core/kernel/json.ts';
import { RouterError } from '../errors.ts';
import { NETWORK_CONFIG } from '../secret-fields.ts';

/** A value of a config that contains no other values. */
export interface Leaf {
  /** Keys and indices from the top. */
  readonly path: readonly string[];
  /** A scalar, or an empty object or array. */
  readonly value: unknown;
  /** Whether the redactor would mask it. */
  readonly secret: boolean;
}

/**
 * The values of a config, in its order. A secret is what the redactor changes (R32), so that commands and log lines
 * agree on it.
 */
export function leavesOf(config: unknown): Leaf[] {
  const leaves: Leaf[] = [];
  const walk = (value: unknown, shown: unknown, path: readonly string[]): void => {
    const parts = childrenOf(value);
    if (parts.length === 0) {
      leaves.push({ path, value, secret: isScalar(value) && value !== shown });
      return;
    }
    for (const [key, item] of parts) walk(item, childOf(shown, key), [...path, key]);
  };
  walk(config, redact(config, PAGE, NETWORK_CONFIG), []);
  return leaves;
}

/** A copy in which `change` has replaced each leaf; keys and order stay. */
function mapLeaves(config: unknown, change: (leaf: Leaf) => unknown): unknown {
  const walk = (value: unknown, shown: unknown, path: readonly string[]): unknown => {
    const parts = childrenOf(value);
    if (parts.length === 0) return change({ path, value, secret: isScalar(value) && value !== shown });
    const mapped = parts.map(
      ([key, item]) => [key, walk(item, childOf(shown, key), [...path, key])] as const,
    );
    return Array.isArray(value) ? mapped.map(([, item]) => item) : Object.fromEntries(mapped);
  };
  return walk(config, redact(config, PAGE, NETWORK_CONFIG), []);
}

/** A path as people read it: `interface.vlan.eth1.10.ipv6`. A key that looks like a secret is masked. */
export function dotted(path: readonly string[]): string {
  return plainText(maskText(path.join('.'))) || '(the whole config)';
}

/** A path without ambiguity (RFC 6901): `/interface/vlan/eth1.10/ipv6`. */
export function pointer(path: readonly string[]): string {
  return path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function childrenOf(value: unknown): (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((item, index) => [String(index), item] as const);
  return isObject(value) ? Object.entries(value) : [];
}

/** The value at the same path of the redacted copy; undefined where a parent was masked as a whole. */
function childOf(shown: unknown, key: string): unknown {
  if (Array.isArray(shown)) return shown[Number(key)];
  return isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined;
}

function isScalar(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}

/** The placeholder in an editor copy for the secret at a path of the active config (R35). */
const PLACEHOLDER = /^\{\{secret (\/.*)\}\}$/s;

/**
 * A copy for an editor: each secret is named by its path instead of shown. The name works anywhere in the copy, so a
 * part can be moved or copied together with its secrets.
 */
export function hideSecrets(config: NetworkConfig): NetworkConfig {
  return mapLeaves(config, ({ path, value, secret }) =>
    // A text that only looks like a placeholder is replaced by a placeholder too; otherwise `apply` would replace it by
    // a secret.
    secret || (typeof value === 'string' && PLACEHOLDER.test(value)) ? `{{secret ${pointer(path)}}}` : value,
  ) as NetworkConfig;
}

/** How many placeholders a copy for an editor contains. */
export function countPlaceholders(copy: NetworkConfig): number {
  return leavesOf(copy).filter(({ value }) => typeof value === 'string' && PLACEHOLDER.test(value)).length;
}

/**
 * Replaces placeholders by their secrets.
 *
 * @param active the config that the placeholders' paths refer to
 * @throws HF_ROUTER_PLACEHOLDER a placeholder names nothing, or a value was redacted and cannot be put back
 */
export function putSecretsBack(copy: NetworkConfig, active: NetworkConfig): NetworkConfig {
  const values = new Map(leavesOf(active).map(({ path, value }) => [pointer(path), value]));
  return mapLeaves(copy, ({ path, value }) => {
    if (typeof value !== 'string') return value;
    const [, named] = PLACEHOLDER.exec(value) ?? [];
    if (named !== undefined) {
      if (values.has(named)) return values.get(named);
      refuse(path, 'the placeholder there names nothing in the active config');
    }
    if (value.includes(REDACTED)) refuse(path, `${REDACTED} stands there instead of a value`);
    return value;
  }) as NetworkConfig;
}

function refuse(path: readonly string[], reason: string): never {
  throw new RouterError('HF_ROUTER_PLACEHOLDER', { path: dotted(path), reason });
}

/** One differing path of two configs. */
interface Change {
  readonly path: string;
  readonly op: 'added' | 'removed' | 'changed';
  /** As text; a secret as its fingerprint. */
  readonly before?: string;
  readonly after?: string;
}

/** Names a secret without revealing it: equal secrets have equal names. */
export type Fingerprint = (value: unknown) => string;

/** Enough to distinguish the secrets of one config, and to compare them by eye. */
const SHOWN = FINGERPRINT_PREFIX.length + 12;

/**
 * The paths at which two configs differ, in the order of the first config, then those that are new; equal configs have
 * no change. The ncid, which every write changes, is left out.
 */
export function differenceOf(
  before: NetworkConfig,
  after: NetworkConfig,
  fingerprint: Fingerprint,
): Change[] {
  const [old, now] = [byPath(before), byPath(after)];
  const leaves = [...old.values(), ...now.values()];
  // A secret is masked in every field that holds it.
  const secrets = new Set(leaves.flatMap(({ value, secret }) => (secret ? [value] : [])));
  const text = ({ value, secret }: Leaf) =>
    secret || secrets.has(value) ? `secret ${fingerprint(value).slice(0, SHOWN)}` : jsonText(value);
  const changes: Change[] = [];
  for (const [key, leaf] of old) {
    const other = now.get(key);
    const path = dotted(leaf.path);
    if (!other) changes.push({ path, op: 'removed', before: text(leaf) });
    else if (!jsonEqual(leaf.value, other.value)) {
      // A value that is secret in one config is treated as secret in both, because its path is the same.
      const secret = leaf.secret || other.secret;
      const [from, to] = [leaf, other].map((side) => text({ ...side, secret }));
      changes.push({ path, op: 'changed', before: from ?? '', after: to ?? '' });
    }
  }
  for (const [key, leaf] of now)
    if (!old.has(key)) changes.push({ path: dotted(leaf.path), op: 'added', after: text(leaf) });
  return changes;
}

/** Lines for a terminal, without colours. */
function changeLines(changes: readonly Change[]): { mark: '+' | '-' | '~'; text: string }[] {
  const width = Math.min(60, Math.max(0, ...changes.map(({ path }) => path.length)));
  return changes.map(({ path, op, before = '', after = '' }) => {
    const name = path.padEnd(width);
    if (op === 'added') return { mark: '+', text: `${name}  ${after}` };
    if (op === 'removed') return { mark: '-', text: `${name}  ${before}` };
    return { mark: '~', text: `${name}  ${before} → ${after}` };
  });
}

function byPath({ ncid: _, ...config }: NetworkConfig): Map<string, Leaf> {
  // The top of an empty config is a leaf, too, but no change.
  const leaves = leavesOf(config).filter(({ path }) => path.length > 0);
  return new Map(leaves.map((leaf) => [pointer(leaf.path), leaf]));
}

/** Prints differences, each with its coloured mark. */
export function showChanges(
  changes: readonly Change[],
  say: (line: string) => void,
  paint: CommandContext['terminal']['paint'],
): void {
  const colours = { '+': 'green', '-': 'red', '~': 'yellow' } as const;
  for (const { mark, text } of changeLines(changes)) say(`${paint(colours[mark], mark)} ${text}`);
}

/**
 * Names secrets: by the key of the data folder where there is one, so that names can be compared with records and
 * from day to day; else by a key of this run alone.
 */
export function fingerprintOf(dataDir: string): Fingerprint {
  const here = existsSync(join(dataDir, 'secrets', 'fingerprint-key'));
  const passing = () => createSecretKey(randomBytes(32));
  const vault = here ? openVault(dataDir) : new Vault({ fingerprint: passing(), sealing: passing() });
  return (value) => vault.fingerprint(value);
}
