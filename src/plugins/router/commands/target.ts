/**
 * The router that a command works on. Every command uses a `RouterTarget`, whichever of four it is: the
 * instance that runs on the data folder, the config store of an instance that does not run, the router elsewhere that the
 * configuration names, or any router by its URL.
 */
import { resolve } from 'node:path';
import type { ConfigStore, HistoryEntry, StoredConfig } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { isSocketBase } from '../../../core/host/http/addresses.ts';
import { ownToken } from '../../../core/host/http/own-surface.ts';
import { postControl } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandFlag } from '../../../core/host/plugin/command.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { lockedBy } from '../../../core/kernel/log/lock.ts';
import type { ObservedRa, RaSource } from '../config/advertisements.ts';
import { interfacesOf, stringsOf } from '../config/network-config.ts';
import type { AddressLookup } from '../config/networks.ts';
import { RouterError } from '../errors.ts';
import { RouterClient } from './client.ts';
import type { SetsReading } from './packet-filter.ts';

/** Control path of the running instance: what the address sets hold. */
export const SETS_PATH = '/router/sets';
/** Control path of the running instance: which prefixes of advertisements its kernel received. */
export const RECEIVED_PATH = '/router/received';
/** Control path of the running instance: which transaction is pending, and until when. */
export const TRANSACTION_PATH = '/router/transaction';

/** Flags of commands that can work on another router than that of the local instance. */
export const targetFlags: readonly CommandFlag[] = [
  { flags: '--url <url>', summary: 'a router API other than that of the configuration' },
  { flags: '--token-file <file>', summary: 'bearer token for --url (mode 0600)' },
  { flags: '--insecure', summary: 'the token may go to another machine over http' },
];

/** The documented window of a router that is not an instance of Holdfast. */
const WINDOW_MS = 120_000;
const TRANSACTION_TIMEOUT_MS = 2_000;

/** What others advertised on the legs, or why that is not known. */
export type RaReading =
  | { readonly state: 'received'; readonly prefixes: readonly ObservedRa[] }
  | { readonly state: 'unknown'; readonly reason: string };

/** The parts of a config store that commands read. */
export type ReadableStore = Pick<ConfigStore, 'active' | 'history' | 'entry'>;

/** An entry of the history as `router history` lists it. */
export type ListedEntry = HistoryEntry & {
  /** Its transaction is neither committed nor reverted. */
  readonly pending?: true;
  /** What it changed is unknown: it was recorded as a whole config, and the one before it is not kept. */
  readonly uncompared?: true;
};

export interface RouterTarget {
  /** Where the config comes from, as output for people. */
  readonly from: string;
  /** Until an uncommitted transaction reverts, milliseconds. */
  readonly windowMs: number;
  /** @throws HF_ROUTER_UNREACHABLE, HF_ROUTER_STORE_* */
  active(signal: AbortSignal): Promise<NetworkConfig>;
  /** The newest accepted writes, newest first, and what was there before them. */
  history(limit: number, signal: AbortSignal): Promise<readonly ListedEntry[]>;
  /** The present addresses of interfaces, delegated ones included; undefined for an unknown interface. */
  addresses(config: NetworkConfig, signal: AbortSignal): Promise<AddressLookup>;
  /** The present content of the packet filter's address sets, or why it cannot be read. */
  filledSets(signal: AbortSignal): Promise<SetsReading>;
  /** Prefixes of advertisements that the router's kernel received, or why nobody can say. */
  received(signal: AbortSignal): Promise<RaReading>;
  /** When the router will revert a pending transaction, epoch milliseconds; undefined where it does not say. */
  deadline(transID: string): Promise<number | undefined>;
  /** @returns the API that takes changes @throws HF_ROUTER_UNREACHABLE nothing runs */
  api(): RouterClient;
  /**
   * Reads the store with whole configs of the past.
   *
   * @throws HF_ROUTER_STORE, HF_ROUTER_STORE_DATABASE, HF_ROUTER_STORE_UNAVAILABLE; HF_CLI_USAGE the target has none
   */
  readStore<T>(read: (store: ReadableStore) => Promise<T>): Promise<T>;
}

/** The settings of the plugin that a command belongs to. */
export interface CommandSettings {
  /** API of the router elsewhere that the configuration names; absent where the instance has a router of its own. */
  readonly url?: string;
  /** Whether the token may go to that API in plaintext. */
  readonly insecure?: boolean | undefined;
  /** The token of that API, or of the instance's own. */
  readonly token: () => string | undefined;
  /** Until an uncommitted transaction of the instance reverts. */
  readonly windowMs: number;
  readonly raSources: readonly RaSource[];
  /**
   * Reads the config store: that of a data folder, whether an instance runs there or not, or the Redis of a router elsewhere.
   *
   * @throws HF_ROUTER_HISTORY no Redis of that router is configured
   */
  readonly readStore: <T>(dataDir: string, read: (store: ReadableStore) => Promise<T>) => Promise<T>;
}

/**
 * The router that the flags name: the one of `--url`, else the one elsewhere of the configuration, else that of the data
 * folder.
 *
 * @throws HF_CLI_USAGE the URL is none
 */
export function openTarget(
  flags: Readonly<Record<string, unknown>>,
  { dataDir }: Pick<CommandContext, 'dataDir'>,
  settings: CommandSettings,
): RouterTarget {
  const { url, tokenFile } = flags;
  if (typeof url === 'string') {
    if (!isSocketBase(url) && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
      const reason = `--url takes an http or https URL, e.g. http://192.168.1.1:8837, or unix:<path of a socket>.`;
      throw new HostError('HF_CLI_USAGE', { reason, command: 'router' });
    }
    // The local instance's token is not sent to other routers.
    const token = typeof tokenFile === 'string' ? readTokenFile(resolve(tokenFile)) : undefined;
    return new RouterByUrl(new RouterClient(url, token, { insecure: flags.insecure === true }), dataDir);
  }
  if (settings.url !== undefined)
    return new RemoteRouterTarget(
      new RouterClient(settings.url, settings.token(), { insecure: settings.insecure }),
      dataDir,
      settings,
    );
  const running = lockedBy(dataDir) === undefined ? undefined : readRuntimeFile(dataDir);
  const api = running?.surfaces.router;
  return api === undefined
    ? new StoppedInstance(dataDir, settings)
    : new RunningInstance(
        new RouterClient(api.url, ownToken(api), { insecure: true, pin: api.tls?.fingerprint }),
        dataDir,
        settings,
      );
}

/** Any router, reached only through its API. */
class RouterByUrl implements RouterTarget {
  readonly windowMs: number = WINDOW_MS;
  protected readonly dataDir: string;
  readonly #client: RouterClient;

  constructor(client: RouterClient, dataDir: string) {
    this.#client = client;
    this.dataDir = dataDir;
  }

  get from(): string {
    return this.#client.url;
  }

  active(signal: AbortSignal): Promise<NetworkConfig> {
    return this.#client.active(signal);
  }

  async history(limit: number, signal: AbortSignal): Promise<readonly ListedEntry[]> {
    const answer = await this.#client.find(`/v1/config/history?limit=${limit}&first=true`, signal);
    if (!answer) {
      const reason = 'its API serves none (404), and nothing says which Redis is that of this router';
      throw new RouterError('HF_ROUTER_HISTORY', { url: this.#client.url, reason });
    }
    const entries = isObject(answer.body) && Array.isArray(answer.body.entries) ? answer.body.entries : [];
    return entries.filter(isListed);
  }

  async addresses(config: NetworkConfig, signal: AbortSignal): Promise<AddressLookup> {
    const addresses = new Map<string, readonly string[]>();
    for (const { name } of interfacesOf(config)) {
      const answer = await this.#client
        .get(`/v1/config/interfaces/${encodeURIComponent(name)}`, signal)
        .catch(() => signal.throwIfAborted());
      const state = isObject(answer) && isObject(answer.state) ? answer.state : undefined;
      if (state?.ip6 !== undefined) addresses.set(name, stringsOf(state.ip6));
    }
    return (intf) => addresses.get(intf);
  }

  async filledSets(signal: AbortSignal): Promise<SetsReading> {
    return (await import('./packet-filter.ts')).readPacketFilter(this.#client.url, signal);
  }

  async received(_signal: AbortSignal): Promise<RaReading> {
    return { state: 'unknown', reason: 'the API of this router does not say what its kernel received' };
  }

  /** Only an instance of Holdfast reports it. The URL may be another address of the instance on the data folder. */
  async deadline(transID: string): Promise<number | undefined> {
    const signal = AbortSignal.timeout(TRANSACTION_TIMEOUT_MS);
    const answer = await postControl(this.dataDir, TRANSACTION_PATH, {}, signal).catch(() => undefined);
    const pending = isObject(answer?.body) ? answer.body : undefined;
    if (pending?.transID !== transID || typeof pending.deadline !== 'string') return undefined;
    return Date.parse(pending.deadline);
  }

  api(): RouterClient {
    return this.#client;
  }

  readStore<T>(_read: (store: ReadableStore) => Promise<T>): Promise<T> {
    const reason = 'The history here is that of the router here: for the one of --url, give a file.';
    return Promise.reject(new HostError('HF_CLI_USAGE', { reason, command: 'router' }));
  }
}

/** The router elsewhere that the configuration names. Its Redis, where one is configured, holds the history. */
class RemoteRouterTarget extends RouterByUrl {
  readonly #settings: CommandSettings;

  constructor(client: RouterClient, dataDir: string, settings: CommandSettings) {
    super(client, dataDir);
    this.#settings = settings;
  }

  override async history(limit: number, signal: AbortSignal): Promise<readonly ListedEntry[]> {
    try {
      return await this.readStore((store) => store.history(limit));
    } catch (error) {
      if (!isCoded(error, 'HF_ROUTER_HISTORY')) throw error;
      // Another Holdfast's embedded router serves its history itself.
      const isServed = await super.history(limit, signal).catch(() => undefined);
      if (isServed) return isServed;
      throw error;
    }
  }

  /** The active config is that of the API: while a transaction is pending, Redis still holds the one before it. */
  override readStore<T>(read: (store: ReadableStore) => Promise<T>): Promise<T> {
    const active = async (): Promise<StoredConfig> => {
      const config = await this.active(new AbortController().signal);
      return { ncid: String(config.ncid), body: JSON.stringify(config) };
    };
    return this.#settings.readStore(this.dataDir, (store) =>
      read({
        active,
        history: (limit) => store.history(limit),
        entry: (ncid) => store.entry(ncid),
      }),
    );
  }
}

/** The instance on the data folder, whose control socket and store provide more than its API. */
class RunningInstance extends RouterByUrl {
  override readonly windowMs: number;
  readonly #settings: CommandSettings;

  constructor(client: RouterClient, dataDir: string, settings: CommandSettings) {
    super(client, dataDir);
    this.windowMs = settings.windowMs;
    this.#settings = settings;
  }

  override async filledSets(signal: AbortSignal): Promise<SetsReading> {
    const answer = await postControl(this.dataDir, SETS_PATH, {}, signal).catch((error: unknown) => {
      if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    });
    const sets = answer?.status === 200 && isObject(answer.body) ? answer.body.sets : undefined;
    if (!isObject(sets))
      return { state: 'assumed', reason: 'the running instance did not say what they hold' };
    const filled = new Map(Object.entries(sets).map(([name, prefixes]) => [name, stringsOf(prefixes)]));
    return { state: 'filled', source: 'the running instance', sets: filled };
  }

  override async received(signal: AbortSignal): Promise<RaReading> {
    const answer = await postControl(this.dataDir, RECEIVED_PATH, {}, signal).catch((error: unknown) => {
      if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    });
    const prefixes = isObject(answer?.body) ? answer.body.prefixes : undefined;
    if (Array.isArray(prefixes)) return { state: 'received', prefixes: prefixes.filter(isReceived) };
    return { state: 'unknown', reason: 'its kernel is not watched' };
  }

  override readStore<T>(read: (store: ReadableStore) => Promise<T>): Promise<T> {
    return this.#settings.readStore(this.dataDir, read);
  }
}

function isReceived(value: unknown): value is ObservedRa {
  return (
    isObject(value) &&
    [value.intf, value.prefix].every((text) => typeof text === 'string') &&
    typeof value.lifetime === 'number'
  );
}

/** The store of an instance that does not run: it can be read and not changed. */
class StoppedInstance implements RouterTarget {
  readonly from = 'the store, because no instance runs here';
  readonly windowMs: number;
  readonly #dataDir: string;
  readonly #settings: CommandSettings;

  constructor(dataDir: string, settings: CommandSettings) {
    this.windowMs = settings.windowMs;
    this.#dataDir = dataDir;
    this.#settings = settings;
  }

  async active(): Promise<NetworkConfig> {
    const active = await this.readStore((store) => store.active());
    return JSON.parse(active?.body ?? '{}');
  }

  history(limit: number): Promise<readonly ListedEntry[]> {
    return this.readStore((store) => store.history(limit));
  }

  async addresses(): Promise<AddressLookup> {
    return () => undefined;
  }

  async filledSets(): Promise<SetsReading> {
    return { state: 'assumed', reason: 'no instance runs here that could be asked' };
  }

  async received(): Promise<RaReading> {
    return { state: 'unknown', reason: 'no instance runs here that could have received any' };
  }

  async deadline(): Promise<number | undefined> {
    return undefined;
  }

  api(): never {
    const reason = `no instance with a router runs on ${this.#dataDir}, and no --url was given`;
    throw new RouterError('HF_ROUTER_UNREACHABLE', { reason });
  }

  readStore<T>(read: (store: ReadableStore) => Promise<T>): Promise<T> {
    return this.#settings.readStore(this.#dataDir, read);
  }
}

function isListed(entry: unknown): entry is ListedEntry {
  return (
    isObject(entry) &&
    typeof entry.score === 'number' &&
    [entry.ncid, entry.op, entry.who].every((text) => typeof text === 'string') &&
    Array.isArray(entry.changed)
  );
}
