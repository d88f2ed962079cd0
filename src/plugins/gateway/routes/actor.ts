/** The actor of the route table and the topics that reach it. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { routes } from '../../../machines/gateway/routes.ts';
import { describeRoutesRecord } from '../words.ts';

export const routesActor = defineActor({
  type: 'gateway.routes',
  machine: routes,
  version: 1,
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
    /** Which of the earlier definitions that is: hosts number their revisions each for itself. */
    back: z.number().exactOptional(),
  }),
  'An operator rolls a route back to an earlier definition.',
);
