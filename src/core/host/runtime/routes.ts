import type { Envelope } from '../../../bus/bus.ts';
import type { Route } from '../../kernel/actors/route.ts';
import { CoreError } from '../../kernel/errors/core-error.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { actorRef } from '../../kernel/ids.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import type { Owned } from '../plugin/registrations.ts';

/**
 * Sends what is published on the bus to the actors that routes name. A request that waits
 * for a decision is refused while the log cannot take one; other messages wait in the mailbox.
 */
export function connectRoutes(
  routes: readonly Owned<Route>[],
  { bus, actors, exchanges, log, logger, metrics }: RuntimeServices,
): void {
  const dropped = metrics.counter('events_dropped_total', {
    help: 'Events that found the mailbox full.',
    labels: ['topic'],
  });
  for (const { topic, to, map, owner } of routes) {
    bus.subscribe(topic, `route of ${owner}`, (envelope: Envelope) => {
      const { correlation, cause, blobs } = envelope;
      if (!actors.accepting() && exchanges.has(correlation)) {
        const { reason = 'too much waits for it already' } = log.status();
        exchanges.fail(correlation, new CoreError('HF_LOG_WRITE', { reason }));
        return;
      }
      for (const { key, event } of map(envelope)) {
        try {
          actors.deliver(actorRef(to, key), event, { correlation, cause, blobs });
        } catch (error) {
          exchanges.fail(correlation, error);
          if (!isCoded(error, 'HF_ACTOR_OVERLOADED')) throw error;
          dropped.inc({ topic: topic.name });
          logger.error(
            { code: error.code, topic: topic.name, actor: actorRef(to, key), correlation },
            'event.dropped',
          );
        }
      }
    });
  }
}
