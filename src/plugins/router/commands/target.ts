import { createSecretKey, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ConfigStore } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { postControl } from '../../../core/host/operations/ask.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { openVault, Vault } from '../../../core/host/secrets/vault.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import type { RaSource } from '../config/advertisements.ts';
import type { FilledSets } from '../config/firewall.ts';
import { interfacesOf, stringsOf } from '../config/network-config.ts';
import { addressSets, type Held } from '../config/networks.ts';
import { RouterError } from '../errors.ts';
import { RouterClient } from './client.ts';
import type { Fingerprint } from './leaves.ts';

/** Control path of the running instance that tells what the address sets hold. */
export const SETS_PATH = '/router/sets';
/** Control path of the running instance that tells which transaction is pending, and until when. */
export const TRANSACTION_PATH = '/router/transaction';

/** What the commands know from the plugin's options. */
export interface CommandSettings {
  /** The token of our own instance's surface. */
  readonly token: () => string | undefined;
  /** Until an uncommitted transaction of our own instance reverts. */
  readonly windowMs: number;
  readonly raSources: readonly RaSource[];
  /** Reads the config store of a data folder, whether an instance runs there or not. */
  readonly readStore: <T>(dataDir: string, read: (store: ReadableStore) => Promise<T>) => Promise<T>;
}

export type ReadableStore = Pick<ConfigStore, 'active' | 'history' | 'entry'>;

type Flags = Readonly<Record<string, unknown>>;
type Where = Pick<CommandContext, 'dataDir'>;

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
      throw new CoreError('HF_CLI_USAGE', { reason, command: 'router' });
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
  throw new RouterError('HF_ROUTER_UNREACHABLE', { reason });
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
  { readStore }: CommandSettings,
  read: (store: ReadableStore) => Promise<T>,
): Promise<T> {
  return readStore(dataDir, read);
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

/**
 * The addresses that interfaces have now, delegated ones among them.
 *
 * @returns nothing for an interface that the router does not tell of
 */
export async function heldNow(
  client: RouterClient | undefined,
  config: NetworkConfig,
  signal: AbortSignal,
): Promise<Held> {
  const held = new Map<string, readonly string[]>();
  for (const { name } of client ? interfacesOf(config) : []) {
    const answer = await client
      ?.get(`/v1/config/interfaces/${encodeURIComponent(name)}`, signal)
      .catch(() => signal.throwIfAborted());
    const state = isObject(answer) && isObject(answer.state) ? answer.state : undefined;
    if (state?.ip6 !== undefined) held.set(name, stringsOf(state.ip6));
  }
  return (intf) => held.get(intf);
}

/** What the address sets hold: as the instance here says, else as they would be filled from these addresses. */
export async function filledSets(
  { dataDir, signal }: Pick<CommandContext, 'dataDir' | 'signal'>,
  config: NetworkConfig,
  held: Held,
  ours: boolean,
): Promise<{ readonly sets: FilledSets; readonly from: string }> {
  if (ours) {
    const answer = await postControl(dataDir, SETS_PATH, {}, signal).catch((error: unknown) => {
      if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    });
    const sets = answer?.status === 200 && isObject(answer.body) ? answer.body.sets : undefined;
    if (isObject(sets)) {
      const filled = Object.entries(sets).map(([name, prefixes]) => [name, stringsOf(prefixes)] as const);
      return { sets: new Map(filled), from: 'as filled now' };
    }
  }
  const computed = new Map<string, readonly string[]>();
  for (const { name, prefixes } of addressSets(config, held))
    computed.set(name, [...(computed.get(name) ?? []), ...prefixes]);
  return { sets: computed, from: 'as they follow from the addresses within a minute' };
}
