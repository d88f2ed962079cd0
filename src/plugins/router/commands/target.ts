import { createSecretKey, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CommandContext, CommandFlag } from '../../../core/host/plugin/command.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { openVault, Vault } from '../../../core/host/secrets/vault.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import type { RaSource } from '../policy/advertisements.ts';
import { type ReadableStore, readStore } from '../store/read-store.ts';
import { RouterClient } from './client.ts';
import type { Fingerprint } from './config/difference.ts';

/** What the commands know from the plugin's options. */
export interface CommandSettings {
  /** The token of our own instance's surface. */
  readonly token: () => string | undefined;
  /** Until an uncommitted transaction of our own instance reverts. */
  readonly windowMs: number;
  readonly raSources: readonly RaSource[];
  /** The config is kept there when it is set, else on the data folder. */
  readonly redisUrl?: string | undefined;
}

type Flags = Readonly<Record<string, unknown>>;
type Where = Pick<CommandContext, 'dataDir'>;

/** Flags of commands that may speak to a router other than that of the instance here. */
export const targetFlags: readonly CommandFlag[] = [
  { flags: '--url <url>', summary: 'a router API other than that of the instance on the data folder' },
  { flags: '--token-file <file>', summary: 'bearer token for --url (mode 0600)' },
];

/**
 * The router that a command is about: the one of `--url`, else that of the instance on the data folder.
 *
 * @returns undefined when nothing runs there and no `--url` was given
 * @throws HF_CLI_USAGE the URL is none
 */
export function clientOf(
  flags: Flags,
  { dataDir }: Where,
  { token }: CommandSettings,
): RouterClient | undefined {
  const { url, tokenFile } = flags;
  if (typeof url === 'string') {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
      const reason = `--url takes an http or https URL, e.g. http://192.168.1.1:8837.`;
      throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'router' });
    }
    // Our own token is not for others.
    return new RouterClient(
      url,
      typeof tokenFile === 'string' ? readTokenFile(resolve(tokenFile)) : undefined,
    );
  }
  const running = urlOf(dataDir);
  return running === undefined ? undefined : new RouterClient(running, token());
}

/** @throws HF_ROUTER_UNREACHABLE nothing runs on the data folder, and no `--url` was given */
export function runningClientOf(flags: Flags, where: Where, settings: CommandSettings): RouterClient {
  const client = clientOf(flags, where, settings);
  if (client) return client;
  const reason = `no instance with a router runs on ${where.dataDir}, and no --url was given`;
  throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason });
}

/** Where the router of the instance on this data folder listens; undefined when none runs. */
function urlOf(dataDir: string): string | undefined {
  if (lockedBy(dataDir) === undefined) return undefined;
  return readRuntimeFile(dataDir)?.surfaces.router?.url;
}

/**
 * Reads the store, whether an instance runs or not.
 *
 * @throws HF_ROUTER_STORE, HF_ROUTER_STORE_DATABASE, HF_ROUTER_STORE_UNAVAILABLE
 */
export function withStore<T>(
  { dataDir }: Where,
  { redisUrl }: CommandSettings,
  read: (store: ReadableStore) => Promise<T>,
): Promise<T> {
  return readStore({ dataDir, redisUrl }, read);
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
