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

export const routeCalled = defineTopic(
  'gateway.route_called',
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('CALL_FAILED'), route: z.string(), at: z.number(), reason: z.string() }),
    z.object({ type: z.literal('CALL_ANSWERED'), route: z.string(), at: z.number() }),
  ]),
  "A client's call failed at a route's upstream, or was answered after one that failed.",
);

export const routeTokenRead = defineTopic(
  'gateway.route_token_read',
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('TOKEN_UNUSABLE'),
      route: z.string(),
      at: z.number(),
      problem: z.string(),
      lastGood: z.boolean(),
      issued: z.literal(true).exactOptional(),
      endsAt: z.number().exactOptional(),
    }),
    z.object({ type: z.literal('TOKEN_USABLE'), route: z.string(), at: z.number() }),
  ]),
  "A route's token was read, and can not be used or can be used again.",
);
