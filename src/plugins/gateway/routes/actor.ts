/** The actor of the route table and the topics that reach it. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { isNewRollback, routeOf } from '../../../machines/gateway/route-table.ts';
import { type RoutesContext, type RoutesEvent, routes } from '../../../machines/gateway/routes.ts';
import { describeRoutesRecord } from '../words.ts';

const VERSION = 1;

const rollbacks = z.record(
  z.string(),
  z.object({ order: z.number(), source: z.string(), fingerprint: z.string() }),
);
const essentials = z.looseObject({ routes: z.record(z.string(), z.looseObject({ source: z.string() })) });
const routesContext = z.custom<RoutesContext>((value) => essentials.safeParse(value).success);

/** Hosts tell each other which rollbacks hold: the definitions themselves are sealed with each host's own key. */
export const routesActor = defineActor({
  type: 'gateway.routes',
  machine: routes,
  version: VERSION,
  hear: (own, { version, context, from, at }): RoutesEvent | undefined => {
    const [known, told] = [own && routesContext.parse(own.context), rollbacks.safeParse(context.rollbacks)];
    if (version !== VERSION || !known || !told.data) return undefined;
    const news = Object.entries(told.data).filter(([name, rollback]) => {
      const route = routeOf(known, name);
      return route && isNewRollback(route, rollback);
    });
    if (news.length === 0) return undefined;
    return { type: 'ROLLBACKS_HEARD', at, from, rollbacks: Object.fromEntries(news) };
  },
  tell: ({ context }) => {
    const states = Object.entries(routesContext.parse(context).routes);
    const told = states.flatMap(([name, { rollback }]) =>
      rollback ? [[name, { ...rollback }] as const] : [],
    );
    const changed = Math.max(0, ...told.map(([, { order }]) => order));
    return { rollbacks: Object.fromEntries(told), changed };
  },
  describe: describeRoutesRecord,
});

/** Key of the only actor of this type. */
export const ROUTES_KEY = 'table';

const origin = z.enum(['start', 'changed', 'requested']);
const facts = z.object({
  name: z.string(),
  fingerprint: z.string(),
  disposition: z.string(),
  upstream: z.string().exactOptional(),
  secret: z.string().exactOptional(),
  settings: z.record(z.string(), z.string()),
});

export const routesLoaded = defineTopic(
  'gateway.routes_loaded',
  z.object({
    at: z.number(),
    origin,
    routes: z.array(facts),
    rejected: z.array(z.object({ name: z.string(), route: z.string(), reason: z.string() })),
  }),
  'The entries of the route table were read.',
);

export const routesRefused = defineTopic(
  'gateway.routes_refused',
  z.object({ at: z.number(), origin, reason: z.string() }),
  'The configuration could not be loaded again.',
);

export const rollbackRequested = defineTopic(
  'gateway.rollback_requested',
  z.object({
    at: z.number(),
    route: z.string(),
    to: z.number().exactOptional(),
    /** Which entry it is about, and which definition serves instead: hosts number their revisions each for itself. */
    source: z.string().exactOptional(),
    fingerprint: z.string().exactOptional(),
  }),
  'An operator rolls a route back to an earlier definition.',
);
