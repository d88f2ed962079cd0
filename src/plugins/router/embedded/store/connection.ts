/** The actor `router.store/redis`: it records when and why the connection to the Redis with the config was lost, and when it was made again. */
import { z } from 'zod';
import { defineTopic } from '../../../../bus/topic.ts';
import type { PluginContext } from '../../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../../core/kernel/actors/definition.ts';
import { connection } from '../../../../machines/connection.ts';
import { describeStoreRecord } from '../../words.ts';

const storeActor = defineActor({
  type: 'router.store',
  machine: connection,
  version: 1,
  input: () => ({
    alert: {
      name: 'router.store_lost',
      text: 'The Redis that holds the router config cannot be reached: the config is neither served nor changed.',
    },
  }),
  describe: describeStoreRecord,
});
const KEY = 'redis';

/** Published at the start, and whenever the connection is lost or made again. */
export const storeConnectionChanged = defineTopic(
  'router.store_connection',
  z.object({ store: z.string(), reason: z.string().exactOptional() }),
  'The Redis that holds the config can be reached, or why it cannot.',
);

export const writeMissed = defineTopic(
  'router.write_missed',
  z.object({ who: z.string() }),
  'A write was refused because the config store cannot be reached.',
);

export function registerStoreConnection(context: PluginContext<object>): void {
  context.actor(storeActor);
  context.route(storeConnectionChanged, storeActor, ({ payload: { store, reason } }) =>
    reason === undefined
      ? [{ key: KEY, event: { type: 'CONNECTED', store } }]
      : [{ key: KEY, event: { type: 'LOST', store, reason } }],
  );
  context.route(writeMissed, storeActor, ({ payload: { who } }) => [
    { key: KEY, event: { type: 'MISSED', who } },
  ]);
}
