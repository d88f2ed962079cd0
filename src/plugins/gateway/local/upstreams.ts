import type { McpServerFactory } from '@modelcontextprotocol/server';
import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import type { HttpClient } from '../../../core/host/http/client.ts';
import { plaintextHost } from '../../../core/host/http/plaintext.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { parseSecretReference } from '../../../core/host/secrets/secret-reference.ts';
import { GatewayError } from '../errors.ts';
import type { ApiTarget } from '../openapi/api-call.ts';
import type { ApiEntry, OpenedApi } from '../openapi/api-server.ts';
import type { UpstreamDispatcher } from './dispatcher.ts';
import { IdentityGuard } from './identity/identity-guard.ts';
import { InProcessServer } from './in-process.ts';
import type { LocalServer } from './server.ts';
import type { WholeCommand } from './stdio/environment.ts';
import { type StdioFacts, StdioServer } from './stdio/stdio-server.ts';

/** In an audience: the base that clients see. */
const GATEWAY_URL = '{gateway_url}';
/** How long reading a secret for a program may take, milliseconds. */
const SECRET_MS = 5_000;

/** What of a route's entry says which server on this machine it has. */
interface LocalEntry extends Omit<ApiEntry, 'openapi'> {
  readonly server?: McpServerFactory | undefined;
  readonly command?: WholeCommand | undefined;
  readonly disposition: string;
  /** Of an identity route: whose tokens it takes, and for what. */
  readonly authorizationServers?: readonly string[] | undefined;
  readonly audience?: string | undefined;
  readonly openapi?: ApiEntry['openapi'] | undefined;
}

/** What checks the tokens of identity routes. */
export interface IdentitySources {
  /** Asks identity providers for their keys. */
  readonly http: Pick<HttpClient, 'call'>;
  /** The base that clients see, where it is configured. */
  readonly publicBase: string | undefined;
}

/** A server on this machine that was opened. */
export interface OpenedUpstream {
  /** Where the dispatcher, and nothing else, reaches it. */
  readonly url: URL;
  /** The API that it is the server of. */
  readonly api?: Pick<OpenedApi, 'reason' | 'reach'>;
}

/** Opens the servers on this machine that routes name, and makes them reachable for the gateway alone. */
export class LocalUpstreams {
  readonly #services: Pick<Services, 'clock' | 'logger' | 'dataDir' | 'find'>;
  readonly #dispatcher: UpstreamDispatcher;
  readonly #identity: IdentitySources;
  /** By the origin at which the dispatcher reaches them. */
  readonly #servers = new Map<string, InProcessServer | StdioServer>();

  constructor(
    services: Pick<Services, 'clock' | 'logger' | 'dataDir' | 'find'>,
    dispatcher: UpstreamDispatcher,
    identity: IdentitySources,
  ) {
    this.#services = services;
    this.#identity = identity;
    this.#dispatcher = dispatcher;
  }

  /**
   * @param credential of the route, for an API
   * @returns undefined where the entry has no server on this machine
   * @throws HF_GATEWAY_ROUTE it takes tokens of callers, and the entry does not say which; HF_GATEWAY_OPENAPI,
   *   HF_GATEWAY_OPENAPI_CHANGED
   */
  async open(entry: LocalEntry, credential: ApiTarget['credential']): Promise<OpenedUpstream | undefined> {
    const { openapi } = entry;
    if (openapi) return this.#openApi({ ...entry, openapi }, credential);
    const server = this.#make(entry);
    if (!server) return undefined;
    const url = this.#dispatcher.serve(entry.name, this.#guarded(entry, server));
    this.#servers.set(url.origin, server);
    return { url };
  }

  /** Loaded with the first such route: the parser of documents takes a seventh of a second. */
  async #openApi(entry: ApiEntry, credential: ApiTarget['credential']): Promise<OpenedUpstream> {
    const { openApi } = await import('../openapi/api-server.ts');
    const api = await openApi(entry, credential, this.#services);
    const server = this.#inProcess(entry.name, api.factory);
    const closing: LocalServer = {
      fetch: (request) => server.fetch(request),
      close: async () => {
        await server.close();
        await api.close();
      },
    };
    return { url: this.#dispatcher.serve(entry.name, closing), api };
  }

  /** @returns what there is to say of the processes of a server; undefined when it is no program. @param url that `open` gave */
  facts(url: URL | undefined): StdioFacts | undefined {
    const server = url && this.#servers.get(url.origin);
    return server instanceof StdioServer ? server.facts() : undefined;
  }

  /** @returns whether it is a server in this process that nobody has called yet. @param url that `open` gave */
  isUnloaded(url: URL | undefined): boolean {
    const server = url && this.#servers.get(url.origin);
    return server instanceof InProcessServer && !server.isLoaded;
  }

  /** Ends a server. @param url that `open` gave */
  close(url: URL): Promise<void> {
    this.#servers.delete(url.origin);
    return this.#dispatcher.remove(url);
  }

  #make({ name, server, command }: LocalEntry): InProcessServer | StdioServer | undefined {
    const { clock, logger, dataDir } = this.#services;
    if (command) {
      const readSecret = (reference: string) => this.#readSecret(reference);
      return new StdioServer({ name, command, folder: dataDir, clock, logger, readSecret });
    }
    return server && this.#inProcess(name, server);
  }

  #inProcess(name: string, factory: McpServerFactory): InProcessServer {
    const { clock, logger } = this.#services;
    const onError = (error: unknown): void =>
      logger.warn({ err: error, route: name }, 'gateway.server_failed');
    return new InProcessServer(factory, { clock, onError });
  }

  /** The server behind a check of its callers' tokens, where it is an identity route. */
  #guarded(entry: LocalEntry, server: LocalServer): LocalServer {
    if (entry.disposition !== 'relay') return server;
    const { name, authorizationServers: issuers, insecure = false } = entry;
    const { publicBase, http } = this.#identity;
    const refused = (reason: string) => new GatewayError('HF_GATEWAY_ROUTE', { variable: name, reason });
    if (!issuers)
      throw refused('its server checks no tokens: name authorizationServers, or make it credentialFree');
    if (entry.audience === undefined) throw refused('it lacks an audience, which its tokens must be for');
    if (publicBase === undefined && entry.audience.includes(GATEWAY_URL))
      throw refused(`its audience names ${GATEWAY_URL}: set publicUrl, for a caller must not choose it`);
    const plaintext = issuers.find((issuer) => !insecure && plaintextHost(issuer) !== undefined);
    if (plaintext !== undefined)
      throw refused(`the keys of ${plaintext} would come in plaintext: name https, or write insecure: true`);
    const audience = entry.audience.replaceAll(GATEWAY_URL, publicBase ?? '');
    const rules = { issuers, audience, mayBePlaintext: insecure };
    return new IdentityGuard(server, rules, { ...this.#services, http });
  }

  /** @throws there is no store, or what it throws */
  async #readSecret(reference: string): Promise<string> {
    const store = this.#services.find(SecretsStoreToken);
    if (!store) throw new Error('no plugin provides a secrets store');
    const { path, property } = parseSecretReference(reference);
    return store.read(path, property, AbortSignal.timeout(SECRET_MS));
  }
}
