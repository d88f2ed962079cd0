/** The actor of the route table, the topics that reach it, and its records in an operator's words. */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { DEFAULT_WORDS, defineActor, HIDDEN, type RecordOf } from '../../../core/kernel/actors/definition.ts';
import { type RouteChange, routes } from '../../../machines/gateway/routes.ts';

export const routesActor = defineActor({
  type: 'gateway.routes',
  machine: routes,
  version: 1,
  describe: describeRecord,
});

/** Key of the only actor of this type. */
export const ROUTES_KEY = 'table';

const origin = z.enum(['start', 'changed', 'requested']);
const facts = z.object({
  name: z.string(),
  fingerprint: z.string(),
  disposition: z.string(),
  upstream: z.string().exactOptional(),
  secret: z.string().exactOptional(),
  settings: z.record(z.string(), z.string()),
});

export const routesLoaded = defineTopic(
  'gateway.routes_loaded',
  z.object({
    at: z.number(),
    origin,
    routes: z.array(facts),
    rejected: z.array(z.object({ name: z.string(), route: z.string(), reason: z.string() })),
  }),
  'The entries of the route table were read.',
);

export const routesRefused = defineTopic(
  'gateway.routes_refused',
  z.object({ at: z.number(), origin, reason: z.string() }),
  'The configuration could not be loaded again.',
);

export const rollbackRequested = defineTopic(
  'gateway.rollback_requested',
  z.object({ at: z.number(), route: z.string(), to: z.number().exactOptional() }),
  'An operator rolls a route back to an earlier definition.',
);

/** What a record that changed the table says about the changes. */
const recordedChanges = z.object({
  changes: z.array(
    z.object({
      name: z.string(),
      what: z.enum(['added', 'changed', 'removed', 'rolled_back']),
      settings: z.array(z.string()).exactOptional(),
    }),
  ),
});

function describeRecord({ event, to }: RecordOf<typeof routes>): string | undefined {
  const changes = recordedChanges.safeParse(to.context).data?.changes ?? [];
  switch (event.type) {
    case 'LOADED': {
      const rejected = event.rejected.length;
      const text = changesText(changes);
      return `routes read (${event.origin}): ${text}${rejected > 0 ? `; ${rejected} rejected` : ''}`;
    }
    case 'REFUSED':
      return `configuration refused: ${event.reason}`;
    case 'ROLLBACK':
      return changes.length > 0 ? `rolled back: ${event.route}` : `no rollback of ${event.route}`;
    case 'SERVED':
      return HIDDEN;
    default:
      return DEFAULT_WORDS;
  }
}

/** @returns e.g. `library_docs changed (url)`; at most three changes by name */
export function changesText(changes: readonly RouteChange[]): string {
  const texts = changes.slice(0, 3).map(({ name, what, settings }) => {
    const which = settings && settings.length > 0 ? ` (${settings.join(', ')})` : '';
    return `${name} ${what.replace('_', ' ')}${which}`;
  });
  const more = changes.length - texts.length;
  return texts.length === 0 ? 'nothing changed' : `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
