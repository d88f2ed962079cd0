import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { defineRoute, type Route } from '../../../core/kernel/actors/route.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import type {
  RollbackRequested,
  RouteChange,
  RoutesContext,
  RoutesEvent,
  RoutesLoaded,
} from '../../../machines/gateway/routes.ts';

/** The one actor of the route table. */
export const ROUTES_ACTOR = 'gateway.routes';
export const ROUTES_KEY = 'table';

const origin = z.enum(['start', 'changed', 'asked']);
const facts = z.object({
  name: z.string(),
  fingerprint: z.string(),
  disposition: z.string(),
  upstream: z.string().optional(),
  secret: z.string().optional(),
  parts: z.record(z.string(), z.string()),
});

export const routesLoaded: Topic<Omit<RoutesLoaded, 'type'>> = defineTopic(
  'gateway.routes_loaded',
  z.object({
    at: z.number(),
    origin,
    routes: z.array(facts),
    rejected: z.array(z.object({ name: z.string(), route: z.string(), reason: z.string() })),
  }) as unknown as z.ZodType<Omit<RoutesLoaded, 'type'>>,
  'The entries of the route table were read.',
);

type Refused = Omit<Extract<RoutesEvent, { type: 'REFUSED' }>, 'type'>;

export const routesRefused: Topic<Refused> = defineTopic(
  'gateway.routes_refused',
  z.object({ at: z.number(), origin, reason: z.string() }),
  'The configuration could not be loaded again.',
);

export const rollbackRequested: Topic<Omit<RollbackRequested, 'type'>> = defineTopic(
  'gateway.rollback_requested',
  z.object({ at: z.number(), route: z.string(), to: z.number().optional() }) as unknown as z.ZodType<
    Omit<RollbackRequested, 'type'>
  >,
  "An operator wants back what served before a route's last change.",
);

const to = <T>(topic: Topic<T>, type: RoutesEvent['type']) =>
  defineRoute(topic, ROUTES_ACTOR, ({ payload }) => [{ key: ROUTES_KEY, event: { type, ...payload } }]);

export const tableRoutes = [
  to(routesLoaded, 'LOADED'),
  to(routesRefused, 'REFUSED'),
  to(rollbackRequested, 'ROLLBACK'),
] as unknown as readonly Route<never>[];

/** A record of the route table in an operator's words, for `holdfast log`. */
export function describeRoutesRecord({ event: recorded, to }: LogRecord): string | undefined {
  const event = recorded as unknown as RoutesEvent;
  const context = to.context as Partial<RoutesContext> | undefined;
  switch (event.type) {
    case 'LOADED': {
      const rejected = event.rejected?.length ?? 0;
      const what = context?.changes ? changesText(context.changes) : 'nothing changed';
      return `routes read (${event.origin}): ${what}${rejected > 0 ? `; ${rejected} rejected` : ''}`;
    }
    case 'REFUSED':
      return `configuration refused: ${event.reason}`;
    case 'ROLLBACK':
      return context?.changes ? `rolled back: ${event.route}` : `no rollback of ${event.route}`;
    case 'SERVED':
      return '';
    default:
      return undefined;
  }
}

/** `library_docs changed (url)`, at most three of them. */
export function changesText(changes: readonly RouteChange[]): string {
  const texts = changes.slice(0, 3).map(({ name, what, parts }) => {
    const which = parts && parts.length > 0 ? ` (${parts.join(', ')})` : '';
    return `${name} ${what.replace('_', ' ')}${which}`;
  });
  const more = changes.length - texts.length;
  return texts.length === 0 ? 'nothing changed' : `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
