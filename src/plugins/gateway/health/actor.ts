/** The actor of a route's health, the topics that reach it, and its records in an operator's words. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { DEFAULT_WORDS, defineActor, type RecordOf } from '../../../core/kernel/actors/definition.ts';
import { routeHealth } from '../../../machines/gateway/route-health.ts';

/** One actor for each route; its key is the route's name. */
export const routeHealthActor = defineActor({
  type: 'gateway.route_health',
  machine: routeHealth,
  version: 1,
  input: (route) => ({ route }),
  describe: describeRecord,
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

function describeRecord({ event, to }: RecordOf<typeof routeHealth>): string | undefined {
  switch (event.type) {
    case 'PROBED': {
      const { reason, tools } = event;
      if (event.found === 'ok') return `is healthy${tools === undefined ? '' : `, ${tools} tools`}`;
      return `is ${String(to.value)}: its upstream ${reason}`;
    }
    case 'RESET':
      return `is probed again from the beginning: ${event.reason}`;
    default:
      return DEFAULT_WORDS;
  }
}
