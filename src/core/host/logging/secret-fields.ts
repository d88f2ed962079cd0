import { isObject } from '../../kernel/json.ts';

/** Names whose value is a secret wherever they stand, without separators and in lower case. */
const SECRET = new RegExp(
  `(?:${[
    'password',
    'passwd',
    'passphrase',
    'secret',
    'psk',
    'token',
    'cookie',
    'credential',
    'authorization',
    '(?:private|preshared|shared|secret|master|mesh|access|api|ingest|virtual|sealing|encryption)key',
    'wepkey\\d?',
    'mcpsessionid',
  ].join('|')})$`,
);
/** What the log says of an `Authorization` in the place of its value: the kind of what was in there. */
const KINDS: ReadonlySet<unknown> = new Set(['bearer', 'virtual_key', 'master_key']);
/** Lists of secrets. A number under such a name counts something (`input_tokens`) and stays. */
const SECRETS = /(?:password|token|credential|secret|cookie|(?:private|api|access)key)s$/;
/** Parts of a config in which every value is held back: all of `wpaSupplicant`. */
const SECRET_PARTS: ReadonlySet<string> = new Set(['wpasupplicant']);

/** Parts of a router config in which more names are secret than elsewhere. */
const SCOPED: Readonly<Record<string, RegExp>> = {
  apc: /^key$/,
  wifinetworks: /^key$/,
  pppoe: /^(?:user|username|login)$/,
  hostapd: /pass|psk|wepkey|secret/,
  wpasupplicant: /^(?:identity|anonymousidentity|pin|password|privatekeypasswd)$/,
};

/** The part of a router config that a walk is inside of; undefined outside of all. */
export type Scope = keyof typeof SCOPED | undefined;

/** Names come from anywhere, so the memory of what they reduce to is bounded. */
const NAMES_KEPT = 4_096;
const names = new Map<string, { readonly name: string; readonly secret: boolean; readonly list: boolean }>();

function known(key: string) {
  const found = names.get(key);
  if (found) return found;
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, '');
  const entry = { name, secret: SECRET.test(name), list: SECRETS.test(name) };
  if (names.size >= NAMES_KEPT) names.clear();
  names.set(key, entry);
  return entry;
}

/** @returns the scope inside the value of `key` */
export function scopeInside(scope: Scope, key: string): Scope {
  const { name } = known(key);
  return Object.hasOwn(SCOPED, name) ? name : scope;
}

/** @returns whether a value under this name is a secret wherever it stands */
export function isSecretName(key: string): boolean {
  return known(key).secret;
}

/**
 * Whether the field `key` of `parent` holds a secret. Nothing is secret about null, true or false.
 *
 * @param scope the part of a config that `parent` lies in
 */
export function isSecretField(scope: Scope, parent: Record<string, unknown>, key: string): boolean {
  const value = parent[key];
  if (value === null || value === undefined || typeof value === 'boolean') return false;
  const { name, secret, list } = known(key);
  if (name === 'authorization' && KINDS.has(value)) return false;
  if (secret || SECRET_PARTS.has(name)) return true;
  if (list) return typeof value === 'string' || Array.isArray(value);
  if (scope !== undefined && SCOPED[scope]?.test(name)) return true;
  // A part of a config may be met without the path to it, and headers and attributes come as name and value.
  if (name === 'key') return 'ssid' in parent;
  if (name === 'username') return 'password' in parent;
  if (name === 'value')
    return [parent.name, parent.key].some((n) => typeof n === 'string' && isSecretName(n));
  return false;
}

/** How many secrets a value holds, and where (R32). */
export interface SecretCount {
  readonly count: number;
  /** JSON pointers (RFC 6901), e.g. `/interface/wireguard/wg0/privateKey`. */
  readonly paths: readonly string[];
}

const DEEPEST = 128;

/**
 * Counts the secret values of a network config, by the rules that redaction follows. Empty values are not
 * counted; of `wpaSupplicant`, of which redaction hides everything, only what is a secret by its name.
 */
export function countSecrets(config: unknown): SecretCount {
  const paths: string[] = [];
  const walk = (value: unknown, scope: Scope, path: string, secret: boolean, depth: number): void => {
    if (depth > DEEPEST) return;
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        walk(item, scope, `${path}/${index}`, secret, depth + 1);
      });
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        const whole = SECRET_PARTS.has(known(key).name);
        const inside = secret || (!whole && isSecretField(scope, value, key));
        walk(value[key], scopeInside(scope, key), `${path}/${pointerPart(key)}`, inside, depth + 1);
      }
    } else if (secret && (typeof value === 'number' || (typeof value === 'string' && value !== ''))) {
      paths.push(path);
    }
  };
  walk(config, undefined, '', false, 0);
  return { count: paths.length, paths };
}

function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
