/** The actor of a route's health and the topics that reach it. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { routeHealth } from '../../../machines/gateway/route-health.ts';
import { describeHealthRecord } from '../words.ts';

/** One actor for each route; its key is the route's name. */
export const routeHealthActor = defineActor({
  type: 'gateway.route_health',
  machine: routeHealth,
  version: 1,
  input: (route) => ({ route }),
  describe: describeHealthRecord,
});

export const routeProbed = defineTopic(
  'gateway.route_probed',
  z.object({
    route: z.string(),
    at: z.number(),
    found: z.enum(['ok', 'undocumented', 'empty', 'refused', 'failed']),
    reason: z.string().exactOptional(),
    tools: z.number().exactOptional(),
  }),
  "A route's upstream was probed, and the result is new.",
);

export const routeReset = defineTopic(
  'gateway.route_reset',
  z.object({ route: z.string(), at: z.number(), reason: z.string() }),
  'A route was redefined or can not be probed: earlier results no longer count.',
);
