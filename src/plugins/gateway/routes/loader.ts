import type { RouteKind } from '../../../core/contracts/mcp-route-kind.ts';
import { Turns } from '../../../core/host/mutex.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type {
  LoadOrigin,
  RejectedEntry,
  RouteFacts,
  RouteState,
  RoutesContext,
} from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import { ROUTES_ACTOR, ROUTES_KEY, routesLoaded, routesRefused } from './actor.ts';
import { type Environment, readRouteEntries, rejectedEntry } from './entry.ts';
import { emptyTable, openRoute, type RejectedRoute, type Route, type RouteTable } from './route.ts';
import { SealedDefinitions } from './sealed-definitions.ts';
import type { SecretSources } from './upstream-secret.ts';

const TABLE = actorRef(ROUTES_ACTOR, ROUTES_KEY);

/**
 * The route table that serves, and how it follows the configuration (G2, G24): entries are read and opened here, the
 * actor decides which of them serve, and `serve` puts its decision in place. Calls that run keep the route they began
 * with.
 */
export class RouteLoader {
  readonly #services: Services;
  readonly #sources: SecretSources;
  readonly #sealed: SealedDefinitions;
  readonly #kinds = new Map<string, RouteKind>();
  /** Routes that were opened, by fingerprint: one that goes on keeps its token. */
  #opened = new Map<string, Route>();
  #table: RouteTable = emptyTable;
  /** A table must not be overtaken by an older one. */
  readonly #turns = new Turns();

  constructor(services: Services, sources: SecretSources) {
    this.#services = services;
    this.#sources = sources;
    this.#sealed = new SealedDefinitions(services.log, services.vault);
  }

  get table(): RouteTable {
    return this.#table;
  }

  /** What the actor knows; undefined before the first load is recorded. */
  get known(): RoutesContext | undefined {
    const context = this.#services.actors.snapshot(TABLE)?.context;
    return context as unknown as RoutesContext | undefined;
  }

  /**
   * Takes entries as the configuration has them; whoever waits for the correlation hears when they serve.
   *
   * @param inputs each is checked for itself
   */
  load(inputs: readonly unknown[], origin: LoadOrigin, correlation?: string): Promise<void> {
    return this.#turns.take(() => this.#load(inputs, origin, correlation));
  }

  /** The configuration as a whole can't be taken. */
  refuse(reason: string, origin: LoadOrigin, correlation?: string): void {
    const { bus, clock, logger } = this.#services;
    logger.error({ reason, origin }, 'gateway.config_refused');
    bus.publish(routesRefused, { at: clock.now(), origin, reason }, correlation ? { correlation } : {});
  }

  /** Puts in place what the actor has decided. Idempotent. */
  serve(): Promise<RouteTable> {
    return this.#turns.take(async () => {
      const { known } = this;
      if (known) this.#table = await this.#tableOf(known);
      return this.#table;
    });
  }

  async #load(inputs: readonly unknown[], origin: LoadOrigin, correlation?: string): Promise<void> {
    const { bus, clock, logger } = this.#services;
    const env: Environment = this.#sources.env;
    const { definitions, rejected } = readRouteEntries(inputs, env);
    const routes: RouteFacts[] = [];
    const unusable: RejectedEntry[] = [];
    const blobs = new Map<string, Uint8Array>();
    await Promise.all(
      definitions.map(async (definition) => {
        const { entry } = definition;
        if (entry.disposition === 'custom') this.#kinds.set(entry.kind.name, entry.kind);
        const facts = this.#sealed.facts(definition);
        try {
          const open = this.#opened.get(facts.fingerprint) ?? (await openRoute(definition, this.#sources));
          this.#opened.set(facts.fingerprint, open);
          blobs.set(facts.fingerprint, this.#sealed.seal(definition));
          routes.push(facts);
        } catch (error) {
          if (!isCoded(error)) throw error;
          unusable.push(rejectedEntry(entry.name, error.what));
        }
      }),
    );
    const all = [...rejected, ...unusable];
    for (const { name, reason } of all) logger.error({ route: name, reason }, 'gateway.route_rejected');
    bus.publish(
      routesLoaded,
      { at: clock.now(), origin, routes, rejected: all },
      { blobs, ...(correlation && { correlation }) },
    );
  }

  async #tableOf({ revision, routes: states, rejected: entries }: RoutesContext): Promise<RouteTable> {
    const opened = new Map<string, Route>();
    const routes = new Map<string, Route>();
    const rejected: RejectedRoute[] = entries.map(({ name, reason }) => ({ name, reason }));
    // By name: the order of the file would be another one after a swap than after a restart.
    const byName = (Object.entries(states) as [string, RouteState][]).sort(([one], [other]) =>
      one < other ? -1 : 1,
    );
    for (const [name, { serving }] of byName) {
      if (!serving) continue;
      const { fingerprint } = serving;
      try {
        const known = this.#opened.get(fingerprint);
        const route =
          known ?? (await openRoute(this.#sealed.open(name, fingerprint, this.#kinds), this.#sources));
        opened.set(fingerprint, route);
        routes.set(name, route);
      } catch (error) {
        if (!isCoded(error)) throw error;
        rejected.push({ name, reason: error.what });
      }
    }
    this.#opened = opened;
    const { logger } = this.#services;
    if (revision !== this.#table.revision) {
      logger.info({ revision, routes: [...routes.keys()], rejected }, 'gateway.routes_served');
    }
    return { revision, routes, rejected };
  }
}

/** What the options of the plugin are compared by. */
type Options = Readonly<Record<string, unknown>>;

/** Reads the configuration again. @returns the names of other options that changed, which need a restart */
export async function reloadRoutes(
  { configFile, logger }: Services,
  routes: RouteLoader,
  origin: LoadOrigin,
  started: Options,
  correlation?: string,
): Promise<readonly string[]> {
  if (!configFile) throw new GatewayError('HF_GATEWAY_RELOAD', { reason: 'it runs without a file' });
  let options: Options | undefined;
  try {
    options = await configFile.optionsOf('gateway');
    if (!options) throw new GatewayError('HF_GATEWAY_RELOAD', { reason: 'the file lists no gateway' });
  } catch (error) {
    routes.refuse(isCoded(error) ? error.what : String(error), origin, correlation);
    return [];
  }
  const later = Object.keys({ ...started, ...options }).filter(
    (name) => name !== 'routes' && JSON.stringify(started[name]) !== JSON.stringify(options?.[name]),
  );
  if (later.length > 0) logger.warn({ options: later }, 'gateway.restart_needed');
  await routes.load(options.routes as readonly unknown[], origin, correlation);
  return later;
}

/** Takes up every change of the configuration's file. @returns ends it */
export function followFile(context: PluginContext, routes: RouteLoader, started: Options): () => void {
  const { services } = context;
  const { configFile, logger } = services;
  if (!configFile) return () => {};
  return configFile.watch(
    () => {
      reloadRoutes(services, routes, 'changed', started).catch((error) =>
        logger.error({ err: error }, 'gateway.reload_failed'),
      );
    },
    (error) => logger.warn({ err: error }, 'gateway.config_not_watched'),
  );
}
