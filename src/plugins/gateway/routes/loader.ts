import { type McpRoute, mcpRoutes } from '../../../core/contracts/mcp-routes.ts';
import type { Contributed } from '../../../core/contracts/token.ts';
import { Mutex } from '../../../core/host/concurrency.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type {
  LoadOrigin,
  RejectedEntry,
  RouteFacts,
  RoutesContext,
} from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import { ROUTES_KEY, routesActor, routesLoaded, routesRefused } from './actor.ts';
import { type RouteDefinition, type RouteEntries, readRouteEntries, rejectedEntry } from './entries.ts';
import type { RouteKind } from './kind.ts';
import {
  emptyTable,
  openRoute,
  type RejectedRoute,
  type Route,
  type RouteSources,
  type RouteTable,
} from './route.ts';
import { SealedDefinitions } from './sealed-definitions.ts';

/** Options of the plugin, of which `routes` are the entries. */
type Options = Readonly<Record<string, unknown>>;

/** How long calls may go on that use the local server of a route that was replaced, milliseconds. */
const CLOSED_AFTER_MS = 30_000;

/**
 * Holds the route table that calls use, and follows the configuration (G2, G24). `load` reads and opens the entries; the
 * actor decides which definition of each route serves; `serve` puts its decision in place. Running calls keep the route
 * that they began with.
 */
export class RouteLoader {
  readonly #services: Services;
  readonly #sources: RouteSources;
  readonly #options: Options;
  readonly #sealed: SealedDefinitions;
  readonly #kinds = new Map<string, RouteKind>();
  /** The newest definitions with a server, by route. */
  readonly #servers = new Map<string, RouteDefinition>();
  /** Open routes by fingerprint. A definition that stays is not opened again, and keeps its token. */
  #opened = new Map<string, Route>();
  /** The table that calls use now; `serve` puts another one in its place. */
  table: RouteTable = emptyTable;
  #stopWatch: (() => void) | undefined;
  /** Loads and swaps run one after another, so that an older table never replaces a newer one. */
  readonly #mutex = new Mutex();

  /** @param options of the plugin as it was started */
  constructor(services: Services, sources: RouteSources, options: Options) {
    this.#services = services;
    this.#sources = sources;
    this.#options = options;
    this.#sealed = new SealedDefinitions(services.log, services.vault);
  }

  /** The state of the actor; undefined before the first load is recorded. */
  get state(): RoutesContext | undefined {
    return this.#services.actors.get(routesActor, ROUTES_KEY)?.context;
  }

  /** Loads the entries of the options that the plugin was started with. */
  start(): Promise<void> {
    return this.#load(this.#options, this.#services.contributions(mcpRoutes), 'start');
  }

  /**
   * Reads the configuration file again. A file that can't be loaded is refused, and the routes stay as they are.
   *
   * @returns names of other options that changed, and take effect at the next start
   * @throws HF_GATEWAY_RELOAD the instance runs without a file
   */
  async reload(origin: LoadOrigin, correlation?: string): Promise<readonly string[]> {
    const { configFile, contributions, logger } = this.#services;
    if (!configFile) throw new GatewayError('HF_GATEWAY_RELOAD', { reason: 'it runs without a file' });
    let options: Options | undefined;
    let contributed: readonly Contributed<McpRoute>[];
    try {
      const plugins = await configFile.plugins();
      options = plugins.find(({ definition }) => definition.name === 'gateway')?.options;
      if (!options) throw new GatewayError('HF_GATEWAY_RELOAD', { reason: 'the file lists no gateway' });
      contributed = contributions(mcpRoutes, plugins);
    } catch (error) {
      this.#refuse(isCoded(error) ? error.what : String(error), origin, correlation);
      return [];
    }
    const restartNeeded = changedOptions(this.#options, options).filter((name) => name !== 'routes');
    if (restartNeeded.length > 0) logger.warn({ options: restartNeeded }, 'gateway.restart_needed');
    await this.#load(options, contributed, origin, correlation);
    return restartNeeded;
  }

  /** Reloads after every change of the configuration file, until `stopFollowing` is called. */
  followFile(): void {
    const { configFile, logger } = this.#services;
    this.#stopWatch = configFile?.watch(
      () => {
        this.reload('changed').catch((error) => logger.error({ err: error }, 'gateway.reload_failed'));
      },
      (error) => logger.warn({ err: error }, 'gateway.config_not_watched'),
    );
  }

  /** Follows the file no more, and asks for no more tokens. */
  stopFollowing(): void {
    this.#stopWatch?.();
    for (const { token } of this.#opened.values()) token?.close();
  }

  /** Puts the table that the actor decided on in place. Idempotent. */
  serve(): Promise<RouteTable> {
    return this.#mutex.run(async () => {
      const { state } = this;
      if (state) this.table = await this.#open(state);
      return this.table;
    });
  }

  #load(
    { routes }: Options,
    contributed: readonly Contributed<McpRoute>[],
    origin: LoadOrigin,
    correlation?: string,
  ): Promise<void> {
    const inputs: readonly unknown[] = Array.isArray(routes) ? routes : [];
    const entries = readRouteEntries(inputs, this.#sources.env, contributed);
    return this.#mutex.run(() => this.#takeEntries(entries, origin, correlation));
  }

  #refuse(reason: string, origin: LoadOrigin, correlation?: string): void {
    const { bus, clock, logger } = this.#services;
    logger.error({ reason, origin }, 'gateway.config_refused');
    bus.publish(routesRefused, { at: clock.now(), origin, reason }, correlation ? { correlation } : {});
  }

  async #takeEntries(
    { definitions, rejected: invalid }: RouteEntries,
    origin: LoadOrigin,
    correlation?: string,
  ): Promise<void> {
    const { bus, clock, logger } = this.#services;
    const routes: RouteFacts[] = [];
    const unusable: RejectedEntry[] = [];
    const blobs = new Map<string, Uint8Array>();
    await Promise.all(
      definitions.map(async (definition) => {
        const { entry } = definition;
        if (entry.disposition === 'custom') this.#kinds.set(entry.kind.name, entry.kind);
        if (entry.server) this.#servers.set(entry.name, definition);
        const facts = this.#sealed.facts(definition);
        const { fingerprint } = facts;
        try {
          const route = this.#opened.get(fingerprint) ?? (await openRoute(definition, this.#sources));
          this.#opened.set(fingerprint, route);
          // A definition that serves stays, as nothing could stand in for it: its token is a matter of the route's health.
          const refused = this.#isServing(facts) ? undefined : route.token?.unusable;
          if (refused) throw refused;
          blobs.set(fingerprint, this.#sealed.seal(definition));
          routes.push(facts);
        } catch (error) {
          if (!isCoded(error)) throw error;
          unusable.push(rejectedEntry(entry.name, error.what));
        }
      }),
    );
    const rejected = [...invalid, ...unusable];
    for (const { name, reason } of rejected) logger.error({ route: name, reason }, 'gateway.route_rejected');
    bus.publish(
      routesLoaded,
      { at: clock.now(), origin, routes, rejected },
      { blobs, ...(correlation && { correlation }) },
    );
  }

  #isServing({ name, fingerprint }: RouteFacts): boolean {
    const { routes = {} } = this.state ?? {};
    return Object.hasOwn(routes, name) && routes[name]?.serving?.fingerprint === fingerprint;
  }

  async #open({ revision, routes: states, rejected: entries }: RoutesContext): Promise<RouteTable> {
    const opened = new Map<string, Route>();
    const routes = new Map<string, Route>();
    const rejected: RejectedRoute[] = entries.map(({ name, reason }) => ({ name, reason }));
    // Sorted by name: the order of the file is not recorded, and would differ after a restart.
    for (const name of Object.keys(states).sort()) {
      const serving = states[name]?.serving;
      if (!serving) continue;
      const { fingerprint } = serving;
      try {
        const route =
          this.#opened.get(fingerprint) ??
          (await openRoute(
            this.#sealed.open(name, fingerprint, { kinds: this.#kinds, servers: this.#servers }),
            this.#sources,
          ));
        opened.set(fingerprint, route);
        routes.set(name, route);
      } catch (error) {
        if (!isCoded(error)) throw error;
        rejected.push({ name, reason: error.what });
      }
    }
    for (const [fingerprint, route] of this.#opened) if (!opened.has(fingerprint)) this.#closeLater(route);
    this.#opened = opened;
    if (revision !== this.table.revision) {
      const { logger } = this.#services;
      logger.info({ revision, routes: [...routes.keys()], rejected }, 'gateway.routes_served');
    }
    return { revision, routes, rejected };
  }

  /** Running calls keep their route, and so its server, for a while. */
  #closeLater(route: Route): void {
    const { clock, logger } = this.#services;
    clock.after(CLOSED_AFTER_MS, () => {
      route.close().catch((error) => logger.warn({ err: error, route: route.name }, 'gateway.server_failed'));
    });
  }
}

function changedOptions(one: Options, other: Options): string[] {
  const names = Object.keys({ ...one, ...other });
  return names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}
