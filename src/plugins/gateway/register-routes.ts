/** The life of the routes: their actors, loading and swapping the table, probes, and the operations of the commands. */
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import type { HttpClient } from '../../core/host/http/client.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { ServeParams } from '../../machines/gateway/routes.ts';
import { contributeActions } from './console-actions.ts';
import { contributePages } from './console-page.ts';
import type { DocumentCache } from './discovery/document-cache.ts';
import { routeCalled, routeHealthActor, routeProbed, routeReset, routeTokenRead } from './health/actor.ts';
import { probe } from './health/probe.ts';
import { Prober } from './health/prober.ts';
import type { IssuerServices } from './issued/issued-tokens.ts';
import type { UpstreamDispatcher } from './local/dispatcher.ts';
import { type IdentitySources, LocalUpstreams } from './local/upstreams.ts';
import { registerToolPins } from './pins/actor.ts';
import { servePinOperations } from './pins/operations.ts';
import { ToolPins } from './pins/tool-pins.ts';
import { ROUTES_KEY, rollbackRequested, routesActor, routesLoaded, routesRefused } from './routes/actor.ts';
import { RouteLoader } from './routes/loader.ts';
import { gatewayHealth, serveRouteOperations } from './routes/operations.ts';

/** What loads and probes the routes, once the plugin has started. */
export interface RouteServices {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock' | 'pendingReplies'>;
  readonly loader: RouteLoader;
  readonly prober: Prober;
  readonly documents: DocumentCache;
  readonly locals: LocalUpstreams;
}

/** Declares actors, topics, the effect that swaps the table, health and operations. */
export function registerRoutes(context: PluginContext<RouteServices>): void {
  context.actor(routesActor);
  context.route(routesLoaded, routesActor, ({ payload }) => [
    { key: ROUTES_KEY, event: { type: 'LOADED', ...payload } },
  ]);
  context.route(routesRefused, routesActor, ({ payload }) => [
    { key: ROUTES_KEY, event: { type: 'REFUSED', ...payload } },
  ]);
  context.route(
    rollbackRequested,
    routesActor,
    ({ payload, order }) => [
      { key: ROUTES_KEY, event: { type: 'ROLLBACK', ...payload, ...(order !== undefined && { order }) } },
    ],
    { everyHost: true, ownState: true }, // each host reads its own file
  );
  context.actor(routeHealthActor);
  context.route(routeProbed, routeHealthActor, ({ payload: { route, ...result } }) => [
    { key: route, event: { type: 'PROBED', ...result } },
  ]);
  context.route(routeReset, routeHealthActor, ({ payload: { route, ...facts } }) => [
    { key: route, event: { type: 'RESET', ...facts } },
  ]);
  context.route(routeCalled, routeHealthActor, ({ payload: { route, ...event } }) => [{ key: route, event }]);
  context.route(routeTokenRead, routeHealthActor, ({ payload: { route, ...event } }) => [
    { key: route, event },
  ]);
  context.effect<ServeParams>(
    'gateway.serve_routes',
    async (_params, { correlation }, { services, loader, prober }) => {
      const table = await loader.serve();
      prober.follow(table);
      const { revision } = table;
      const changes = (loader.state?.changes ?? []).map((change) => ({ ...change }));
      const rejected = table.rejected.map((entry) => ({ ...entry }));
      // A command that reloads or rolls back is answered when the new table is in place.
      services.pendingReplies.settle(correlation, { status: 200, body: { revision, changes, rejected } });
      return { type: 'SERVED', revision };
    },
    { onRecovery: 'retry' },
  );
  registerToolPins(context);
  context.health('gateway', gatewayHealth);
  context.control(serveRouteOperations);
  context.control(servePinOperations);
  contributeActions(context);
  contributePages(context);
  context.onStop(({ loader, prober }) => {
    loader.stopFollowing();
    prober.stop();
  });
}

/** What sends requests to upstreams and to their authorization servers. */
interface Senders {
  /** Sends the probes of upstreams. */
  readonly http: HttpClient;
  readonly documents: DocumentCache;
  readonly agent: UpstreamDispatcher;
  /** Also asks identity providers for their keys. */
  readonly issuers: IssuerServices & Pick<IdentitySources, 'http'>;
  /** The base that clients see, where it is configured. */
  readonly publicBase: string | undefined;
}

/** Loads the routes, and begins to probe them and to follow the configuration file. */
export async function startRoutes(
  services: Services,
  options: Readonly<Record<string, unknown>> & { readonly probeEveryMs: number },
  { http, documents, agent, issuers, publicBase }: Senders,
): Promise<Pick<RouteServices, 'loader' | 'prober' | 'locals'>> {
  const pins = new ToolPins(services, services.find(ClusterToken)?.key('gateway tools'));
  const locals = new LocalUpstreams(services, agent, { http: issuers.http, publicBase });
  const sources = {
    env: process.env,
    store: services.find(SecretsStoreToken),
    locals,
    pins,
    issuers,
  };
  const loader = new RouteLoader(services, sources, options);
  await loader.start();
  const prober = new Prober({
    services,
    everyMs: options.probeEveryMs,
    probe: (route, stop) => probe(route, http, documents, stop, pins),
    isUnloaded: ({ entry, url }) => entry.onDemand === true && locals.isUnloaded(url),
    random: Math.random,
  });
  prober.follow(await loader.serve());
  loader.followFile();
  return { loader, prober, locals };
}
