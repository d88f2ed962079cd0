/** What is secret in a plugin's documents, beyond the names that are secret everywhere. */
export interface SecretFields {
  /**
   * Ends of further names whose value is a secret wherever they stand: regular expressions over the name in lower case
   * and without separators, e.g. `wepkey\\d?`.
   */
  readonly names?: readonly string[];
  /** Parts of a document, by their name, in which every value is held back. */
  readonly parts?: readonly string[];
  /** Parts of a document, by their name, and which names in them are secret there. */
  readonly inside?: Readonly<Record<string, RegExp>>;
  /** Names that are secret in an object that has another name too, e.g. `{ key: 'ssid' }`. */
  readonly beside?: Readonly<Record<string, string>>;
}

/** Ends of names whose value is a secret wherever they stand, without separators and in lower case. */
const secretNames = new Set([
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
]);
let secretName = endsWithOne(secretNames);
/** Lists of secrets. A number under such a name counts something (`input_tokens`) and stays. */
let secretList = listOf(secretNames);
/** What the log says of an `Authorization` in the place of its value: the kind of what was in there. */
const KINDS: ReadonlySet<unknown> = new Set(['bearer', 'virtual_key', 'master_key']);
const secretParts = new Set<string>();
const inside = new Map<string, RegExp>();
/** A part of a document may be met without the path to it. */
const beside = new Map([['username', 'password']]);

/**
 * Makes the redactor know the secrets of further documents, for the life of the process. The command line calls it before
 * any command runs, for the plugins that the program brings; `definePlugin` calls it for those of others.
 */
export function declareSecretFields(fields: SecretFields): void {
  for (const name of fields.names ?? []) secretNames.add(name);
  secretName = endsWithOne(secretNames);
  secretList = listOf(secretNames);
  for (const part of fields.parts ?? []) secretParts.add(part);
  for (const [part, names] of Object.entries(fields.inside ?? {})) inside.set(part, names);
  for (const [name, other] of Object.entries(fields.beside ?? {})) beside.set(name, other);
  names.clear();
}

function endsWithOne(ends: ReadonlySet<string>): RegExp {
  return new RegExp(`(?:${[...ends].join('|')})$`);
}

/** The plurals of those names. */
function listOf(ends: ReadonlySet<string>): RegExp {
  return new RegExp(`(?:${[...ends].join('|')})s$`);
}

/** The declared part of a document that a walk is inside of; undefined outside of all. */
export type Scope = string | undefined;

/** Names come from anywhere, so the memory of what they reduce to is bounded. */
const NAMES_KEPT = 4_096;
const names = new Map<string, { readonly name: string; readonly secret: boolean; readonly list: boolean }>();

function classifyName(key: string) {
  const found = names.get(key);
  if (found) return found;
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, '');
  const entry = { name, secret: secretName.test(name), list: secretList.test(name) };
  if (names.size >= NAMES_KEPT) names.clear();
  names.set(key, entry);
  return entry;
}

/** @returns the scope inside the value of `key` */
export function scopeInside(scope: Scope, key: string): Scope {
  const { name } = classifyName(key);
  return inside.has(name) ? name : scope;
}

/** @returns whether every value inside of `key` is held back */
export function isSecretPart(key: string): boolean {
  return secretParts.has(classifyName(key).name);
}

/** @returns whether a value under this name is a secret wherever it stands */
export function isSecretName(key: string): boolean {
  return classifyName(key).secret;
}

/**
 * Whether the field `key` of `parent` holds a secret. Nothing is secret about null, true or false.
 *
 * @param scope the part of a config that `parent` lies in
 */
export function isSecretField(scope: Scope, parent: Record<string, unknown>, key: string): boolean {
  const value = parent[key];
  if (value === null || value === undefined || typeof value === 'boolean') return false;
  const { name, secret, list } = classifyName(key);
  if (name === 'authorization' && KINDS.has(value)) return false;
  if (secret || secretParts.has(name)) return true;
  if (list) return typeof value === 'string' || Array.isArray(value);
  if (scope !== undefined && inside.get(scope)?.test(name)) return true;
  const other = beside.get(name);
  if (other !== undefined && other in parent) return true;
  // Headers and attributes come as name and value.
  if (name === 'value')
    return [parent.name, parent.key].some((n) => typeof n === 'string' && isSecretName(n));
  return false;
}
