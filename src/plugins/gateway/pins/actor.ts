/** The actor of a route's pinned tools and the topics that reach it. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { toolPins } from '../../../machines/gateway/tool-pins.ts';
import { describeToolsRecord } from '../words.ts';

/** One actor for each route; its key is the route's name. */
export const toolPinsActor = defineActor({
  type: 'gateway.tool_pins',
  machine: toolPins,
  version: 1,
  input: (route) => ({ route }),
  describe: describeToolsRecord,
});

const part = z.object({ part: z.string(), before: z.string(), after: z.string() }).readonly();

export const toolsSeen = defineTopic(
  'gateway.tools_seen',
  z.object({
    route: z.string(),
    at: z.number(),
    policy: z.enum(['follow', 'ask', 'block']),
    tools: z.record(z.string(), z.string()),
    changes: z.array(
      z.object({
        tool: z.string(),
        what: z.enum(['added', 'removed', 'changed']),
        parts: z.array(part).readonly().exactOptional(),
      }),
    ),
    digest: z.string().exactOptional(),
  }),
  "A route's upstream defines its tools otherwise than before.",
);

export const toolsAccepted = defineTopic(
  'gateway.tools_accepted',
  z.object({ route: z.string(), at: z.number(), by: z.string(), digest: z.string().exactOptional() }),
  "A person accepts what a route's upstream makes of its tools.",
);

/** Declares the actor, and how the topics reach it. */
export function registerToolPins<S>(context: Pick<PluginContext<S>, 'actor' | 'route'>): void {
  context.actor(toolPinsActor);
  context.route(toolsSeen, toolPinsActor, ({ payload: { route, ...seen } }) => [
    { key: route, event: { type: 'SEEN', ...seen } },
  ]);
  context.route(
    toolsAccepted,
    toolPinsActor,
    ({ payload: { route, ...facts }, order }) => [
      { key: route, event: { type: 'ACCEPTED', ...facts, ...(order !== undefined && { order }) } },
    ],
    { everyHost: true, ownState: true }, // fingerprints are made with each host's own key
  );
}
