/** `holdfast stack secrets`: the documents' table of keys, with the place and age of each, and never a value (O25). */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type SecretsStore, SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { ActiveKeys, StartedCollector } from './active-keys.ts';
import { NO_COLLECTOR } from './errors.ts';
import { INGEST_KEY_NAME } from './key-source.ts';
import type { CollectorOptions } from './options.ts';

const SECRETS_PATH = '/collector/secrets';
const DEADLINE_MS = 15_000;
const DAY_MS = 86_400_000;

/** A documented key, with its state on this host. */
export interface SecretRow extends Omit<DocumentedKey, 'isLegacy'> {
  readonly state: 'present' | 'missing' | 'placeholder' | 'unreadable';
  readonly place: string;
  readonly ageDays?: number;
  /** What is wrong with it, or worth knowing. */
  readonly note?: string;
}

export function registerSecrets(context: PluginContext<StartedCollector>, options: CollectorOptions): void {
  context.control((surface, { keys, services: { find, clock, dataDir } }) => {
    serveOperation(surface, SECRETS_PATH, z.strictObject({}), async (_body, operation) => {
      const store = find(SecretsStoreToken);
      const signal = AbortSignal.any([operation.signal, AbortSignal.timeout(DEADLINE_MS)]);
      const rows: SecretRow[] = [];
      for (const key of DOCUMENTED_KEYS) {
        const path = key.of === 'stack' ? options.secretsPath : options.gatewaySecretsPath;
        const row = await rowOf(key, path, store, clock.now(), signal);
        const own = row.state === 'missing' ? ownPlace(key.name, dataDir, keys) : undefined;
        rows.push(own ? { ...row, ...own } : row);
      }
      return { secrets: rows };
    });
  });
  context.command(secretsCommand);
}

async function rowOf(
  { isLegacy, ...key }: DocumentedKey,
  path: string,
  store: SecretsStore | undefined,
  now: number,
  signal: AbortSignal,
): Promise<SecretRow> {
  const place = `${path}#${key.name}`;
  if (!store) return { ...key, state: 'missing', place, note: 'no secrets store is configured' };
  try {
    const described = await store.describe?.(path, key.name, signal);
    const about = {
      ...key,
      place: described?.place ?? place,
      ...(described?.changedAt !== undefined && {
        ageDays: Math.max(0, Math.floor((now - described.changedAt) / DAY_MS)),
      }),
    };
    if (described && !described.exists) {
      const note = isLegacy
        ? 'put any value there: the secret-sync object must not be without data'
        : undefined;
      return { ...about, state: 'missing', ...(note !== undefined && { note }) };
    }
    const value = await store.read(path, key.name, signal);
    if (key.name !== 'ui_oidc_client_secret' || !isPlaceholder(value)) return { ...about, state: 'present' };
    const note = 'it is the placeholder that was seeded: apply the code that writes the real one';
    return { ...about, state: 'placeholder', note };
  } catch (error) {
    if (isCoded(error, 'HF_CONFIG_SECRET_MISSING')) return { ...key, state: 'missing', place };
    return { ...key, state: 'unreadable', place, note: isCoded(error) ? error.what : 'it failed' };
  }
}

/** Where Holdfast itself keeps a key that the store lacks. */
function ownPlace(name: string, dataDir: string, { own }: ActiveKeys) {
  const file =
    name === INGEST_KEY_NAME
      ? own?.file
      : name === 'master_key'
        ? join(dataDir, 'secrets', 'master-key')
        : undefined;
  if (file !== undefined && existsSync(file)) {
    const ageDays = Math.max(0, Math.floor((Date.now() - statSync(file).mtimeMs) / DAY_MS));
    return { state: 'present' as const, place: file, ageDays, note: 'made by Holdfast' };
  }
  const variable = ['HOLDFAST_MASTER_KEY_FILE', 'HOLDFAST_MASTER_KEY'].find((one) => process.env[one]);
  if (name === 'master_key' && variable) return { state: 'present' as const, place: `variable ${variable}` };
  return undefined;
}

const COLOURS = { present: 'green', missing: 'yellow', placeholder: 'red', unreadable: 'red' } as const;

const secretsCommand: CommandDefinition = {
  name: 'stack secrets',
  summary:
    'Lists the keys of the stack and the gateway: what for, where, how old, what rotating each does; never a value',
  example: 'holdfast stack secrets',
  async run(_args, _flags, context) {
    const { secrets } = await askInstance<{ secrets: SecretRow[] }>(context, SECRETS_PATH, {}, NO_COLLECTOR);
    const isBad = secrets.some(({ state }) => state === 'placeholder' || state === 'unreadable');
    if (context.json) {
      context.print(JSON.stringify({ secrets }));
      return isBad ? 1 : 0;
    }
    const { paint } = context.terminal;
    for (const { name, state, place, ageDays, purpose, rotation, command, note } of secrets) {
      const age = ageDays === undefined ? '' : `, ${ageDays} ${ageDays === 1 ? 'day' : 'days'} old`;
      context.print(
        `${paint('bold', name.padEnd(26))}${paint(COLOURS[state], state)}${age}  ${paint('dim', place)}`,
      );
      context.print(`  for:     ${purpose}`);
      context.print(`  rotated: ${rotation}${command ? ` (${command})` : ''}`);
      if (note) context.print(`  ${paint('yellow', 'note:')}    ${note}`);
    }
    return isBad ? 1 : 0;
  },
};

/** One of the secrets that the documents name. */
export interface DocumentedKey {
  readonly name: string;
  readonly of: 'stack' | 'gateway';
  readonly purpose: string;
  /** What follows when it is rotated. */
  readonly rotation: string;
  /** How, where Holdfast or a command does it. */
  readonly command?: string;
  readonly isLegacy?: true;
}

/** The keys of the stack's and the gateway's path in the secrets store (O25). */
const DOCUMENTED_KEYS: readonly DocumentedKey[] = [
  {
    name: 'admin_password',
    of: 'stack',
    purpose: 'admin of the columnar database',
    rotation: 'whoever logs in with it is refused until it has the new one: Holdfast, dashboards, the UI',
  },
  {
    name: 'docdb_admin_password',
    of: 'stack',
    purpose: 'admin of the document database',
    rotation: 'the UI answers 5xx until it has the new one',
  },
  {
    name: 'docdb_replicaset_keyfile',
    of: 'stack',
    purpose: "authentication among the document database's three members",
    rotation: 'members with different keys refuse one another: rotate all at once, with the UI down',
  },
  {
    name: 'ui_bootstrap_secret',
    of: 'stack',
    purpose: "signs the UI's sessions",
    rotation: 'signs everyone out of the UI once; the app is restarted by its restarter',
  },
  {
    name: 'ui_oidc_client_secret',
    of: 'stack',
    purpose: "the UI's client secret at the identity provider",
    rotation: 'nobody can log in to the UI until the identity provider has the same; its own code writes it',
  },
  {
    name: 'otel_ingest_api_key',
    of: 'stack',
    purpose: 'admits producers of telemetry (OTLP)',
    rotation:
      'producers with the old key are refused; it is made by the UI, or by Holdfast where it is the collector, and cannot be planted beforehand',
    command: 'holdfast stack rotate-ingest-key',
  },
  {
    name: 'otel_ingest_token',
    of: 'stack',
    purpose: 'the old token: admits nobody; a secret-sync object refers to it and must not be without data',
    rotation: 'never rotate, empty or delete it',
    isLegacy: true,
  },
  {
    name: 'master_key',
    of: 'gateway',
    purpose: "the gateway's admin endpoints",
    rotation: 'scripts that mint or revoke keys are refused until they have it; virtual keys go on',
  },
  {
    name: 'claude_code_api_key',
    of: 'gateway',
    purpose: "the workstation's virtual key at the gateway",
    rotation: 'the workstation is refused until its clients have the new one',
    command: 'holdfast gateway keys rotate',
  },
];

const PLACEHOLDERS =
  /^(?:place-?holder|change[-_ ]?me|to-?do|tbd|dummy|example|xxx+|unset|none|null|replace[-_ ]?me)\b/i;

/** Whether a value is a placeholder and not a real secret. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDERS.test(value.trim()) || /^<.*>$/.test(value.trim()) || new Set(value.trim()).size < 3;
}
