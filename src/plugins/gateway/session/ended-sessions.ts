import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { keyActor } from '../keys/virtual-keys.ts';

const KEPT = 20_000;
/** So often a host tells the others, at most, milliseconds: a client that ends thousands holds no change of a key up. */
const TELL_EVERY_MS = 100;
/** Sessions of one message, by far less than one may hold. */
const MOST_TOLD = 500;

export const sessionsEnded = defineTopic(
  'gateway.sessions_ended',
  z.object({ sessions: z.array(z.string().max(64)).max(MOST_TOLD) }),
  'Clients have ended their sessions: no host goes on with them.',
);

/**
 * Sessions that their clients ended, whose sealed ids would open them again: by the hashes of those ids. A memory and no
 * table, on every host of a cluster.
 */
export class EndedSessions {
  readonly #ended = new LRUCache<string, true>({ max: KEPT });
  /** What the other hosts have yet to hear. */
  readonly #untold = new Set<string>();
  readonly #services: Pick<Services, 'bus' | 'clock'> | undefined;
  #cancel: (() => void) | undefined;

  /** @param services lead to the other hosts; undefined without any */
  constructor(services?: Pick<Services, 'bus' | 'clock'>) {
    this.#services = services;
  }

  /** @param session hash of its sealed id */
  end(session: string): void {
    this.note(session);
    if (!this.#services) return;
    if (this.#untold.size < KEPT) this.#untold.add(session);
    if (!this.#cancel) this.#tell(this.#services);
  }

  /** A client ended it on some host. */
  note(session: string): void {
    this.#ended.set(session, true);
  }

  has(session: string): boolean {
    return this.#ended.has(session);
  }

  /** Tells the others what they have yet to hear, as far as one message goes. */
  stop(): void {
    this.#cancel?.();
    if (this.#services) this.#publish(this.#services);
  }

  /** The first at once, what follows together. */
  #tell(services: Pick<Services, 'bus' | 'clock'>): void {
    this.#cancel = undefined;
    if (this.#untold.size === 0) return;
    this.#publish(services);
    this.#cancel = services.clock.after(TELL_EVERY_MS, () => this.#tell(services));
  }

  #publish({ bus }: Pick<Services, 'bus'>): void {
    const sessions = [...this.#untold.values().take(MOST_TOLD)];
    for (const session of sessions) this.#untold.delete(session);
    if (sessions.length > 0) bus.publish(sessionsEnded, { sessions });
  }
}

/** Every host hears of sessions that ended. No actor keeps them: the route leads to none. */
export function registerEndedSessions(context: PluginContext<{ readonly ended: EndedSessions }>): void {
  context.route(
    sessionsEnded,
    keyActor,
    ({ payload: { sessions } }, { ended }) => {
      for (const session of sessions) ended.note(session);
      return [];
    },
    { everyHost: true },
  );
}
