import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import type { HttpClient } from '../../core/host/http/client.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { ServeParams } from '../../machines/gateway/routes.ts';
import type { DocumentCache } from './discovery/document-cache.ts';
import { routeHealthActor, routeProbed, routeReset } from './health/actor.ts';
import { probe } from './health/probe.ts';
import { Prober } from './health/prober.ts';
import { ROUTES_KEY, rollbackRequested, routesActor, routesLoaded, routesRefused } from './routes/actor.ts';
import { RouteLoader } from './routes/loader.ts';
import { gatewayHealth, serveRouteOperations } from './routes/operations.ts';
import type { RouteTable } from './routes/route.ts';

/** The routes as the rest of the plugin uses them. */
export interface GatewayRoutes {
  /** The table that calls use now. */
  readonly table: () => RouteTable;
  /** @param http sends the probes of upstreams */
  readonly start: (http: HttpClient, documents: DocumentCache) => Promise<void>;
  readonly stop: () => void;
}

interface Started {
  readonly loader: RouteLoader;
  readonly health: Prober;
  readonly documents: DocumentCache;
}

/** Declares the life of the routes: their actors, loading and swapping the table, probes, and the commands' operations. */
export function registerRoutes(
  context: PluginContext,
  options: Readonly<Record<string, unknown>> & { readonly probeEveryMs: number },
): GatewayRoutes {
  let running: Started | undefined;
  let stopFollowing = () => {};
  const started = (): Started => {
    if (!running) throw new Error('the gateway plugin has not started');
    return running;
  };

  context.actor(routesActor);
  const toTable = <E>(event: E) => [{ key: ROUTES_KEY, event }];
  context.route(routesLoaded, routesActor, ({ payload }) => toTable({ type: 'LOADED', ...payload }));
  context.route(routesRefused, routesActor, ({ payload }) => toTable({ type: 'REFUSED', ...payload }));
  context.route(rollbackRequested, routesActor, ({ payload }) => toTable({ type: 'ROLLBACK', ...payload }));
  context.actor(routeHealthActor);
  context.route(routeProbed, routeHealthActor, ({ payload: { route, ...result } }) => [
    { key: route, event: { type: 'PROBED' as const, ...result } },
  ]);
  context.route(routeReset, routeHealthActor, ({ payload: { route, ...facts } }) => [
    { key: route, event: { type: 'RESET' as const, ...facts } },
  ]);
  context.effect<ServeParams>(
    'gateway.serve_routes',
    async (_params, { correlation }) => {
      const { loader } = started();
      const { revision, rejected } = await loader.serve();
      running?.health.follow(loader.table);
      const changes = loader.state?.changes ?? [];
      // A command that reloads or rolls back is answered when the new table is in place.
      context.services.exchanges.settle(correlation, {
        status: 200,
        body: {
          revision,
          changes: changes.map((change) => ({ ...change })),
          rejected: rejected.map((entry) => ({ ...entry })),
        },
      });
      return { type: 'SERVED', revision };
    },
    { onRecovery: 'retry' },
  );
  context.health('gateway', () => gatewayHealth(started()));
  context.control((surface) => serveRouteOperations(surface, context.services, started));

  return {
    table: () => started().loader.table,
    async start(http, documents) {
      const { services } = context;
      const sources = { env: process.env, store: services.find(SecretsStoreToken) };
      const loader = new RouteLoader(services, sources, options);
      const health = new Prober({
        services,
        everyMs: options.probeEveryMs,
        probe: (route, stop) => probe(route, http, documents, stop),
        random: Math.random,
      });
      running = { loader, health, documents };
      await loader.start();
      health.follow(await loader.serve());
      stopFollowing = loader.followFile();
    },
    stop() {
      stopFollowing();
      running?.health.stop();
    },
  };
}
