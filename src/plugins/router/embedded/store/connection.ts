import { z } from 'zod';
import { defineTopic, type Topic } from '../../../../bus/topic.ts';
import type { PluginContext } from '../../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../../../core/kernel/actors/route.ts';
import type { LogRecord } from '../../../../core/kernel/log/record.ts';
import { connection } from '../../../../machines/connection.ts';

const STORE_ACTOR = 'router.store';
const KEY = 'redis';

const change = z.object({ store: z.string(), reason: z.string().optional() });

/** Published at the start, and whenever the connection goes or comes. */
export const storeConnectionChanged: Topic<z.infer<typeof change>> = defineTopic(
  'router.store_connection',
  change,
  'The Redis that holds the config is there, or away for a reason.',
);

const missed = z.object({ who: z.string() });

export const writeMissed: Topic<z.infer<typeof missed>> = defineTopic(
  'router.write_missed',
  missed,
  'A write was refused because the config store is away.',
);

/** The actor by which the log tells of the store's connection. */
export function registerStoreConnection(context: PluginContext): void {
  context.actor(defineActor({ type: STORE_ACTOR, machine: connection, version: 1, describe }));
  context.route(
    defineRoute(storeConnectionChanged, STORE_ACTOR, ({ payload: { store, reason } }) => [
      {
        key: KEY,
        event: reason === undefined ? { type: 'CONNECTED', store } : { type: 'LOST', store, reason },
      },
    ]),
  );
  context.route(
    defineRoute(writeMissed, STORE_ACTOR, ({ payload: { who } }) => [
      { key: KEY, event: { type: 'MISSED', who } },
    ]),
  );
}

function describe({ event }: LogRecord): string | undefined {
  switch (event.type) {
    case 'CONNECTED':
      return `${event.store} is there`;
    case 'LOST':
      return `${event.store} is away: ${event.reason}`;
    case 'MISSED':
      return `${event.who} saves: refused, the store is away`;
    default:
      return event.type === 'effect.done' ? '' : undefined;
  }
}
