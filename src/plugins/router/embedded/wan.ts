import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../../core/kernel/actors/route.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import { accessPoints } from '../../../machines/router/access-points.ts';
import {
  type WanContext,
  type WanEvent,
  type WanParams,
  type WanPublishParams,
  wan,
} from '../../../machines/router/wan.ts';
import type { RouterParts } from './http-api.ts';
import type { Wan } from './kernel/steps.ts';

/** A WAN beside the config; its key is the interface's name. */
const WAN_ACTOR = 'router.wan';
/** The access-point controller; its one key is `box`. */
const APC_ACTOR = 'router.access_points';

const asked = z.object({
  wan: z.string(),
  kind: z.enum(['pd-change', 'down', 'up']),
  prefix: z.string().optional(),
  request: z.string().optional(),
});

/** `EVENT_PD_CHANGE` is the kind `pd-change`. */
export const wanEvent: Topic<z.infer<typeof asked>> = defineTopic(
  'router.wan_event',
  asked,
  'A WAN was delegated another prefix, went down or came up.',
);

export const apcEvent: Topic<{ request: string }> = defineTopic(
  'router.apc_event',
  z.object({ request: z.string() }),
  'The access-point controller took a change.',
);

/** Registers WANs and the access-point controller: what changes the box without its config (R17, R39). */
export function registerWans(context: PluginContext, parts: () => RouterParts): void {
  context.actor(
    defineActor({
      type: WAN_ACTOR,
      machine: wan,
      version: 1,
      input: (key) => ({ wan: key }),
      describe: describeWanRecord,
    }),
  );
  context.actor(defineActor({ type: APC_ACTOR, machine: accessPoints, version: 1 }));
  context.route(
    defineRoute(wanEvent, WAN_ACTOR, ({ payload: { wan: key, ...ask } }) => [
      { key, event: { type: 'ASKED', ...ask } },
    ]),
  );
  context.route(
    defineRoute(apcEvent, APC_ACTOR, ({ payload }) => [
      { key: 'box', event: { type: 'CHANGED', ...payload } },
    ]),
  );
  context.effect<WanParams>(
    'router.change_wan',
    (params, effect) => parts().router.changeWan(params, effect),
    {
      onRecovery: 'retry',
      adapter: 'kernel',
    },
  );
  context.effect<WanPublishParams>(
    'router.publish_wan',
    ({ wan: intf, up, ncid }, { at, cause, correlation }) => {
      const { bus } = context.services;
      const change = { ncid, intf, at, up };
      bus.publish(routerChannels.wanStateChanged, change, { correlation, cause });
      bus.publish(routerChannels.wanConnChanged, change, { correlation, cause });
    },
    { onRecovery: 'retry', adapter: 'bus' },
  );
  context.effect(
    'router.publish_apc',
    async (_params, { at, cause, correlation }) => {
      const { ncid } = await parts().router.active();
      context.services.bus.publish(routerChannels.apcChangeApplied, { ncid, at }, { correlation, cause });
    },
    { onRecovery: 'retry', adapter: 'bus' },
  );
}

/** What the log knows of the WANs. */
export function knownWans({ actors }: Services): ReadonlyMap<string, Wan> {
  const known = actors.list(WAN_ACTOR).map(({ ref, context }): [string, Wan] => {
    const { up, prefix } = context as unknown as WanContext;
    return [parseActorRef(ref).key, { up, prefix }];
  });
  return new Map(known);
}

function describeWanRecord({ event: recorded }: LogRecord): string | undefined {
  const event = recorded as unknown as WanEvent;
  if (event.type === 'ASKED')
    return event.kind === 'pd-change' ? `was delegated ${event.prefix}` : `goes ${event.kind}`;
  if (event.type === 'WAN_APPLIED')
    return event.reapplied.length > 0 ? `reapplied: ${event.reapplied.join(', ')}` : 'stands';
  return event.type === 'WAN_REFUSED' ? `not followed: ${event.reason}` : undefined;
}
