/** The actor of a route's pinned tools and the topics that reach it. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { type ToolPinsEvent, toolPins } from '../../../machines/gateway/tool-pins.ts';
import { describeToolsRecord } from '../words.ts';

const VERSION = 1;

const told = z.object({
  agreed: z.object({ order: z.number(), digest: z.string(), by: z.string() }).optional(),
  order: z.number().optional(),
});

/** One actor for each route; its key is the route's name. Hosts tell each other what a person accepted: each sees the tools by itself. */
export const toolPinsActor = defineActor({
  type: 'gateway.tool_pins',
  machine: toolPins,
  version: VERSION,
  input: (route) => ({ route }),
  hear: (own, { version, context, at }): ToolPinsEvent | undefined => {
    const agreed = told.safeParse(context).data?.agreed;
    const order = told.safeParse(own?.context).data?.order ?? 0;
    if (version !== VERSION || !agreed || agreed.order <= order) return undefined;
    return { type: 'ACCEPTED', at, ...agreed };
  },
  tell: ({ context }) => {
    const { agreed } = told.parse(context);
    return { ...(agreed && { agreed }), changed: agreed?.order ?? 0 };
  },
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
    { everyHost: true, ownState: true }, // each host sees the tools by itself
  );
}
