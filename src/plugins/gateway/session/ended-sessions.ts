import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { keyActor } from '../keys/virtual-keys.ts';

const KEPT = 20_000;

const sessionEnded = defineTopic(
  'gateway.session_ended',
  z.object({ session: z.string().max(64) }),
  'A client has ended its session: no host goes on with it.',
);

/**
 * Sessions that their clients ended, whose sealed ids would open them again: by the hashes of those ids. A memory and no
 * table, on every host of a cluster.
 */
export class EndedSessions {
  readonly #ended = new LRUCache<string, true>({ max: KEPT });
  readonly #bus: Services['bus'] | undefined;

  /** @param bus leads to the other hosts; undefined without any */
  constructor(bus?: Services['bus']) {
    this.#bus = bus;
  }

  /** @param session hash of its sealed id */
  end(session: string): void {
    this.note(session);
    this.#bus?.publish(sessionEnded, { session });
  }

  /** A client ended it on some host. */
  note(session: string): void {
    this.#ended.set(session, true);
  }

  has(session: string): boolean {
    return this.#ended.has(session);
  }
}

/** Every host hears of sessions that ended. No actor keeps them: the route leads to none. */
export function registerEndedSessions(context: PluginContext<{ readonly ended: EndedSessions }>): void {
  context.route(
    sessionEnded,
    keyActor,
    ({ payload: { session } }, { ended }) => {
      ended.note(session);
      return [];
    },
    { everyHost: true },
  );
}
