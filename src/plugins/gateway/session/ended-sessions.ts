import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { type EndedSessionsEvent, endedSessions, isNews } from '../../../machines/gateway/ended-sessions.ts';
import { describeEndedSessionsRecord } from '../words.ts';

/** Those that ended here, of which the others have not heard or the record is not there. */
const KEPT = 20_000;
/** So often a host tells the others, at most, milliseconds: a client that ends thousands holds no change of a key up. */
const TELL_EVERY_MS = 100;
/** Sessions of one message, by far less than one may hold. */
const MOST_TOLD = 500;

export const sessionsEnded = defineTopic(
  'gateway.sessions_ended',
  z.object({ at: z.number(), sessions: z.array(z.string().min(1).max(64)).max(MOST_TOLD) }),
  'Clients have ended their sessions: no host goes on with them.',
);

type EndingServices = Pick<Services, 'bus' | 'clock'> & { readonly actors: Pick<Services['actors'], 'get'> };

const VERSION = 1;
const known = z.object({ ended: z.record(z.string().max(64), z.number()) });

/** One actor for each first character of the sessions' hashes. */
const endedSessionsActor = defineActor({
  type: 'gateway.ended_sessions',
  machine: endedSessions,
  version: VERSION,
  hear: (own, { version, context, from }): EndedSessionsEvent | undefined => {
    const heard = known.safeParse(context).data;
    if (version !== VERSION || !heard) return undefined;
    const ours = known.safeParse(own?.context).data ?? { ended: {} };
    return isNews(ours, heard.ended) ? { type: 'HEARD', from, ended: heard.ended } : undefined;
  },
  describe: describeEndedSessionsRecord,
});

/** Sessions that their clients ended, whose sealed ids would open them again: by the hashes of those ids, on every host of a cluster. */
export class EndedSessions {
  readonly #ended = new LRUCache<string, true>({ max: KEPT });
  /** What the other hosts have yet to hear. */
  readonly #untold = new Set<string>();
  readonly #services: EndingServices;
  #cancel: (() => void) | undefined;

  constructor(services: EndingServices) {
    this.#services = services;
  }

  /** @param session hash of its sealed id */
  end(session: string): void {
    this.#ended.set(session, true);
    if (this.#untold.size < KEPT) this.#untold.add(session);
    if (!this.#cancel) this.#tell();
  }

  has(session: string): boolean {
    if (this.#ended.has(session)) return true;
    const { ended = {} } = this.#services.actors.get(endedSessionsActor, session.charAt(0))?.context ?? {};
    return Object.hasOwn(ended, session);
  }

  /** Tells the others what they have yet to hear, as far as one message goes. */
  stop(): void {
    this.#cancel?.();
    this.#publish();
  }

  /** The first at once, what follows together. */
  #tell(): void {
    this.#cancel = undefined;
    if (this.#untold.size === 0) return;
    this.#publish();
    this.#cancel = this.#services.clock.after(TELL_EVERY_MS, () => this.#tell());
  }

  #publish(): void {
    const { bus, clock } = this.#services;
    const sessions = [...this.#untold.values().take(MOST_TOLD)];
    for (const session of sessions) this.#untold.delete(session);
    if (sessions.length > 0) bus.publish(sessionsEnded, { at: clock.now(), sessions });
  }
}

/** Every host hears of sessions that ended. */
export function registerEndedSessions<S>(context: PluginContext<S>): void {
  context.actor(endedSessionsActor);
  context.route(
    sessionsEnded,
    endedSessionsActor,
    ({ payload: { at, sessions } }) =>
      [...Map.groupBy(sessions, (session) => session.charAt(0))].map(([key, ended]) => ({
        key,
        event: { type: 'ENDED', at, sessions: ended },
      })),
    { everyHost: true },
  );
}
