/**
 * What changes the router without its config (R17, R39): WANs (actors `router.wan/<interface>`) and the access-point
 * controller (`router.access_points/default`).
 */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { accessPoints } from '../../../machines/router/access-points.ts';
import { type WanParams, type WanPublishParams, wan } from '../../../machines/router/wan.ts';
import { describeAccessPoints, describeWanRecord } from '../words.ts';
import type { RouterAccess } from './embedded-router.ts';
import type { Wan } from './kernel/steps.ts';

const wanActor = defineActor({
  type: 'router.wan',
  machine: wan,
  version: 1,
  input: (key) => ({ wan: key }),
  describe: describeWanRecord,
});

const accessPointsActor = defineActor({
  type: 'router.access_points',
  machine: accessPoints,
  version: 1,
  describe: describeAccessPoints,
});
const ACCESS_POINTS_KEY = 'default';

/** `EVENT_PD_CHANGE` is the kind `pd-change`. */
export const wanEvent = defineTopic(
  'router.wan_event',
  z.object({
    wan: z.string(),
    kind: z.enum(['pd-change', 'down', 'up', 'lost', 'connected', 'readdressed']),
    prefix: z.string().exactOptional(),
    legs: z.array(z.string()).exactOptional(),
    request: z.string().exactOptional(),
  }),
  'A WAN was delegated another prefix, changed its address or its connection, went down or came up.',
);

export const apcEvent = defineTopic(
  'router.apc_event',
  z.object({ request: z.string() }),
  'The access-point controller took a change.',
);

/** Registers both kinds of actors, their routes and effects. */
export function registerWans(context: PluginContext<RouterAccess>): void {
  context.actor(wanActor);
  context.actor(accessPointsActor);
  context.route(wanEvent, wanActor, ({ payload: { wan: key, ...change } }) => [
    { key, event: { type: 'CHANGED', ...change } },
  ]);
  context.route(apcEvent, accessPointsActor, ({ payload }) => [
    { key: ACCESS_POINTS_KEY, event: { type: 'CHANGED', ...payload } },
  ]);
  context.effect<WanParams>(
    'router.change_wan',
    (params, effect, { router }) => router.changeWan(params, effect),
    { onRecovery: 'retry', adapter: 'kernel' },
  );
  context.effect<WanPublishParams>(
    'router.publish_wan',
    ({ wan: intf, up, ncid }, { at, cause, correlation }, { services: { bus } }) => {
      const change = { ncid, intf, at, up };
      bus.publish(routerChannels.wanStateChanged, change, { correlation, cause });
      bus.publish(routerChannels.wanConnChanged, change, { correlation, cause });
    },
    { onRecovery: 'retry', adapter: 'bus' },
  );
  context.effect(
    'router.publish_apc',
    async (_params, { at, cause, correlation }, { router, services: { bus } }) => {
      const { ncid } = await router.active();
      bus.publish(routerChannels.apcChangeApplied, { ncid, at }, { correlation, cause });
    },
    { onRecovery: 'retry', adapter: 'bus' },
  );
}

/** What will be known of a WAN once the changes that wait have been applied. */
export function expectedWan(
  { actors }: Pick<Services, 'actors'>,
  key: string,
): { readonly up: boolean; readonly connected: boolean; readonly prefix?: string | undefined } {
  const { up = true, connected = true, prefix, job, queue = [] } = actors.get(wanActor, key)?.context ?? {};
  const expected = { up, connected, prefix };
  for (const change of [...(job ? [job] : []), ...queue]) {
    if (change.kind === 'down' || change.kind === 'up') expected.up = change.kind === 'up';
    if (change.kind === 'lost' || change.kind === 'connected')
      expected.connected = change.kind === 'connected';
    if (change.kind === 'pd-change') expected.prefix = change.prefix;
  }
  return expected;
}

/** The newest state of each WAN in the log, by interface. */
export function knownWans({ actors }: Pick<Services, 'actors'>): ReadonlyMap<string, Wan> {
  return new Map(
    actors.list(wanActor).map(({ key, context: { up, prefix } }): [string, Wan] => [key, { up, prefix }]),
  );
}
