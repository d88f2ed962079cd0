import type { Dispatcher } from 'undici';
import { z } from 'zod';
import type { Route } from '../../../bus/index.ts';
import { defineActor } from '../../../core/actors/index.ts';
import { SecretsStoreToken } from '../../../core/adapters/secrets-store.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import type { HttpSurface } from '../../../core/http/index.ts';
import type { PluginContext } from '../../../core/plugin/index.ts';
import { mcpRouteHealth } from '../../../machines/mcp-route-health.ts';
import { mcpRoutes, type ServeParams } from '../../../machines/mcp-routes.ts';
import { describeHealthRecord } from '../health/describe.ts';
import { probe } from '../health/probe.ts';
import { HEALTH_ACTOR, healthRoutes, Prober } from '../health/prober.ts';
import { describeRoutesRecord } from './describe.ts';
import { LiveRoutes } from './live-routes.ts';
import { followFile, reloadRoutes } from './reload.ts';
import { ROUTES_ACTOR, rollbackAsked, tableRoutes } from './topics.ts';
import { faultOf, viewOf } from './view.ts';

/** What commands post to. */
export const ROUTES_PATH = '/gateway/routes';
export const RELOAD_PATH = '/gateway/reload';
export const ROLLBACK_PATH = '/gateway/rollback';

const REPLY_MS = 15_000;
const rollbackBody = z.strictObject({ route: z.string().min(1).max(64), to: z.int().min(1).optional() });

/** The route table as the rest of the plugin uses it. */
export interface TableLife {
  /** There once the plugin has started. */
  readonly live: () => LiveRoutes;
  /** @param agent by which upstreams are looked at */
  readonly start: (agent: Dispatcher) => Promise<void>;
  readonly stop: () => void;
}

/** Declares the life of the route table: its actor, the swap, the file that is followed, and what commands ask for. */
export function registerTable(
  context: PluginContext,
  options: Readonly<Record<string, unknown>> & { readonly probeEveryMs: number },
): TableLife {
  let started: LiveRoutes | undefined;
  let prober: Prober | undefined;
  let unfollow = () => {};
  const live = (): LiveRoutes => {
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
  context.control((surface) => controlRoutes(surface, context, live, options, () => prober));

  return {
    live,
    async start(agent) {
      const { services } = context;
      started = new LiveRoutes(services, { env: process.env, store: services.find(SecretsStoreToken) });
      await started.load(options.routes as readonly unknown[], 'start');
      prober = new Prober({
        services,
        everyMs: options.probeEveryMs,
        look: (route, stop) => probe(route, agent, stop),
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

function controlRoutes(
  surface: HttpSurface,
  context: PluginContext,
  live: () => LiveRoutes,
  options: Readonly<Record<string, unknown>>,
  prober: () => Prober | undefined,
): void {
  surface.post(ROUTES_PATH, () => viewOf(live(), prober()));

  surface.post(RELOAD_PATH, async (request, reply) => {
    const { services } = context;
    const answer = services.exchanges.open(request.id, REPLY_MS);
    answer.catch(() => {}); // a reload that throws leaves nobody waiting
    const restart = await reloadRoutes(services, live(), 'asked', options, request.id);
    const { status, body } = await answer;
    return reply.code(status).send({ ...(body as object), restart });
  });

  surface.post(ROLLBACK_PATH, async (request, reply) => {
    const asked = rollbackBody.safeParse(request.body);
    if (!asked.success)
      throw new HoldfastError('HF_GATEWAY_ROLLBACK', { reason: 'the request names no route' });
    const { exchanges, bus, clock } = context.services;
    const answer = exchanges.open(request.id, REPLY_MS);
    const { route, to } = asked.data;
    bus.publish(
      rollbackAsked,
      { at: clock.now(), route, ...(to !== undefined && { to }) },
      { correlation: request.id },
    );
    const { status, body } = await answer;
    return reply.code(status).send(body);
  });
}
