import type { Dispatcher } from 'undici';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import type { Route } from '../../core/kernel/actors/route.ts';
import { mcpRouteHealth } from '../../machines/gateway/route-health.ts';
import { mcpRoutes, type ServeParams } from '../../machines/gateway/routes.ts';
import type { DocumentCache } from './discovery/document-cache.ts';
import { probe } from './health/probe.ts';
import { describeHealthRecord, HEALTH_ACTOR, healthRoutes, Prober } from './health/prober.ts';
import { describeRoutesRecord, ROUTES_ACTOR, tableRoutes } from './routes/actor.ts';
import { followFile, RouteLoader } from './routes/loader.ts';
import { faultOf, serveRoutes } from './routes/operations.ts';

/** The route table as the rest of the plugin uses it. */
export interface TableLife {
  /** There once the plugin has started. */
  readonly live: () => RouteLoader;
  /** @param agent by which upstreams are looked at @param documents of those that have their callers log in */
  readonly start: (agent: Dispatcher, documents: DocumentCache) => Promise<void>;
  readonly stop: () => void;
}

/** Declares the life of the route table: its actor, the swap, the file that is followed, and what commands ask for. */
export function registerTable(
  context: PluginContext,
  options: Readonly<Record<string, unknown>> & { readonly probeEveryMs: number },
): TableLife {
  let started: RouteLoader | undefined;
  let prober: Prober | undefined;
  let read: DocumentCache | undefined;
  let unfollow = () => {};
  const live = (): RouteLoader => {
    if (!started) throw new Error('the gateway plugin has not started');
    return started;
  };

  context.actor(
    defineActor({ type: ROUTES_ACTOR, machine: mcpRoutes, version: 1, describe: describeRoutesRecord }),
  );
  context.actor(
    defineActor({
      type: HEALTH_ACTOR,
      machine: mcpRouteHealth,
      version: 1,
      input: (route) => ({ route }),
      describe: describeHealthRecord,
    }),
  );
  for (const route of [...tableRoutes, ...healthRoutes]) context.route(route as Route<never>);
  context.effect<ServeParams>(
    'gateway.serve_routes',
    async (_params, { correlation }) => {
      const table = await live().serve();
      const { revision, rejected } = table;
      prober?.follow(table);
      const changes = live().known?.changes ?? [];
      // Whoever asked hears of it when it serves.
      context.services.exchanges.settle(correlation, {
        status: 200,
        body: { revision, changes, rejected } as never,
      });
      return { type: 'SERVED', revision };
    },
    { onRecovery: 'retry' },
  );
  context.health('gateway', () => faultOf(live(), prober));
  context.control((surface) =>
    serveRoutes(surface, context, { live, health: () => prober, documents: () => read, options }),
  );

  return {
    live,
    async start(agent, documents) {
      read = documents;
      const { services } = context;
      started = new RouteLoader(services, { env: process.env, store: services.find(SecretsStoreToken) });
      await started.load(options.routes as readonly unknown[], 'start');
      prober = new Prober({
        services,
        everyMs: options.probeEveryMs,
        look: (route, stop) => probe(route, agent, documents, stop),
        random: Math.random,
      });
      prober.follow(await started.serve());
      unfollow = followFile(context, started, options);
    },
    stop() {
      unfollow();
      prober?.stop();
    },
  };
}
