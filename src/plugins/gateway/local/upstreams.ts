import type { McpServerFactory } from '@modelcontextprotocol/server';
import type { McpCommand } from '../../../core/contracts/mcp-routes.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { UpstreamDispatcher } from './dispatcher.ts';
import { InProcessServer } from './in-process.ts';
import type { LocalServer } from './server.ts';

/** A program with the defaults of its settings. */
export type WholeCommand = Required<Omit<McpCommand, 'cwd'>> & { readonly cwd?: string | undefined };

/** What of a route's entry says which server on this machine it has. */
interface LocalEntry {
  readonly name: string;
  readonly server?: McpServerFactory | undefined;
  readonly command?: WholeCommand | undefined;
}

/** Opens the servers on this machine that routes name, and makes them reachable for the gateway alone. */
export class LocalUpstreams {
  readonly #services: Pick<Services, 'clock' | 'logger'>;
  readonly #dispatcher: UpstreamDispatcher;

  constructor(services: Pick<Services, 'clock' | 'logger'>, dispatcher: UpstreamDispatcher) {
    this.#services = services;
    this.#dispatcher = dispatcher;
  }

  /** @returns where the dispatcher reaches the server of an entry; undefined where it has none on this machine */
  open(entry: LocalEntry): URL | undefined {
    const server = this.#make(entry);
    return server && this.#dispatcher.serve(entry.name, server);
  }

  /** Ends a server. @param url that `open` gave */
  close(url: URL): Promise<void> {
    return this.#dispatcher.remove(url);
  }

  #make({ name, server }: LocalEntry): LocalServer | undefined {
    const { clock, logger } = this.#services;
    const onError = (error: unknown): void =>
      logger.warn({ err: error, route: name }, 'gateway.server_failed');
    return server && new InProcessServer(server, { clock, onError });
  }
}
