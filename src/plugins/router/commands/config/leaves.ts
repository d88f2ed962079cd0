import { maskText } from '../../../../core/host/logging/mask-text.ts';
import { PAGE, redact } from '../../../../core/host/logging/redact.ts';
import { plainText } from '../../../../core/host/terminal.ts';
import { isObject } from '../../../../core/kernel/json.ts';

/** A value of a config that holds no further ones. */
export interface Leaf {
  /** Keys and indices from the top. */
  readonly path: readonly string[];
  /** A scalar, or an empty object or array. */
  readonly value: unknown;
  /** Whether the redactor would hold it back. */
  readonly secret: boolean;
}

/**
 * The values of a config, in its order. What is secret is what the one redactor changes (R32): nobody else knows
 * better, and what it does not recognise is not shown as a secret by anybody.
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
  walk(config, redact(config, PAGE), []);
  return leaves;
}

/** A copy in which each leaf is what `change` says; keys and order stay. */
export function mapLeaves(config: unknown, change: (leaf: Leaf) => unknown): unknown {
  const walk = (value: unknown, shown: unknown, path: readonly string[]): unknown => {
    const parts = childrenOf(value);
    if (parts.length === 0) return change({ path, value, secret: isScalar(value) && value !== shown });
    const mapped = parts.map(
      ([key, item]) => [key, walk(item, childOf(shown, key), [...path, key])] as const,
    );
    return Array.isArray(value) ? mapped.map(([, item]) => item) : Object.fromEntries(mapped);
  };
  return walk(config, redact(config, PAGE), []);
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

/** What stands at the same place of the redacted copy; undefined where something above was held back whole. */
function childOf(shown: unknown, key: string): unknown {
  if (Array.isArray(shown)) return shown[Number(key)];
  return isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined;
}

function isScalar(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}
