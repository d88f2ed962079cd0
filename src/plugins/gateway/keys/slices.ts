/** Slices of limits that all hosts share: what one wants, every host hears in the same order, and the key's machine grants. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { WantParams } from '../../../machines/gateway/key-shapes.ts';
import { keyActor } from './virtual-keys.ts';

const sliceWanted = defineTopic(
  'gateway.slice_wanted',
  z.object({
    key: z.string(),
    host: z.string(),
    hosts: z.number(),
    wants: z.array(
      z.object({
        name: z.string(),
        used: z.number(),
        began: z.number().exactOptional(),
        need: z.number(),
        base: z.number().exactOptional(),
      }),
    ),
  }),
  'A host wants to spend more of the limits of a key that all hosts share.',
);

interface SliceServices {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock'>;
  readonly cluster: Cluster | undefined;
}

/** Declares the topic's way to the key, and the effect that asks. */
export function registerSlices(context: PluginContext<SliceServices>): void {
  context.route(
    sliceWanted,
    keyActor,
    ({ payload: { key, ...want }, order, sentAt }, { services: { actors, clock }, cluster }) => {
      // A key that this host does not have yet comes with all that was granted.
      if (order === undefined || !cluster || !actors.get(keyActor, key)) return [];
      const at = clock.now();
      const event = {
        type: 'SLICE_WANTED',
        at,
        order,
        sentAt: sentAt ?? at,
        here: cluster.host,
        ...want,
      } as const;
      return [{ key, event }];
    },
    { everyHost: true },
  );
  context.effect<WantParams>(
    'gateway.want_slice',
    // Not in the correlation of the call, which would end with the message if that can't be sent.
    (params, { actor, cause }, { services }) => {
      const key = actor.slice(keyActor.type.length + 1);
      services.bus.publish(sliceWanted, { key, ...params, wants: [...params.wants] }, { cause });
    },
    { onRecovery: 'fail' },
  );
}
