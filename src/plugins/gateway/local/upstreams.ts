import type { McpServerFactory } from '@modelcontextprotocol/server';
import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { parseSecretReference } from '../../../core/host/secrets/secret-reference.ts';
import type { UpstreamDispatcher } from './dispatcher.ts';
import { InProcessServer } from './in-process.ts';
import type { WholeCommand } from './stdio/environment.ts';
import { type StdioFacts, StdioServer } from './stdio/stdio-server.ts';

/** How long reading a secret for a program may take, milliseconds. */
const SECRET_MS = 5_000;

/** What of a route's entry says which server on this machine it has. */
interface LocalEntry {
  readonly name: string;
  readonly server?: McpServerFactory | undefined;
  readonly command?: WholeCommand | undefined;
}

/** Opens the servers on this machine that routes name, and makes them reachable for the gateway alone. */
export class LocalUpstreams {
  readonly #services: Pick<Services, 'clock' | 'logger' | 'dataDir' | 'find'>;
  readonly #dispatcher: UpstreamDispatcher;
  /** By the origin at which the dispatcher reaches them. */
  readonly #servers = new Map<string, InProcessServer | StdioServer>();

  constructor(
    services: Pick<Services, 'clock' | 'logger' | 'dataDir' | 'find'>,
    dispatcher: UpstreamDispatcher,
  ) {
    this.#services = services;
    this.#dispatcher = dispatcher;
  }

  /** @returns where the dispatcher reaches the server of an entry; undefined where it has none on this machine */
  open(entry: LocalEntry): URL | undefined {
    const server = this.#make(entry);
    const url = server && this.#dispatcher.serve(entry.name, server);
    if (url && server) this.#servers.set(url.origin, server);
    return url;
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
    const onError = (error: unknown): void =>
      logger.warn({ err: error, route: name }, 'gateway.server_failed');
    return server && new InProcessServer(server, { clock, onError });
  }

  /** @throws there is no store, or what it throws */
  async #readSecret(reference: string): Promise<string> {
    const store = this.#services.find(SecretsStoreToken);
    if (!store) throw new Error('no plugin provides a secrets store');
    const { path, property } = parseSecretReference(reference);
    return store.read(path, property, AbortSignal.timeout(SECRET_MS));
  }
}
