import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Session } from '../session/sealed-sessions.ts';

const KEPT = 10_000;

/** The session with one upstream within a session of the aggregate. */
export interface Leg {
  /** Empty for an upstream that keeps no sessions. */
  readonly id: string;
  /** Revision that the upstream agreed on. */
  readonly version: string;
}

/** A session of the aggregate, as its sealed id says. */
export interface OpenSession {
  /** Hash of the sealed id: what it is remembered by. */
  readonly name: string;
  readonly state: Session;
}

export const openSession = (id: string, state: Session): OpenSession => ({
  name: hash('sha256', id, 'base64url'),
  state,
});

/** @returns the leg that was there when the session began */
export function sealedLeg({ state }: OpenSession, route: string): Leg | undefined {
  if (!Object.hasOwn(state.upstream, route)) return undefined;
  return { id: state.upstream[route] ?? '', version: state.versions?.[route] ?? state.version };
}

/**
 * Legs that came after their session's id was sealed: an upstream has restarted, or was away when the session began. A
 * memory and no table: what is forgotten here costs another `initialize`, and no client notices.
 */
export class Legs {
  readonly #later = new LRUCache<string, Promise<Leg>>({ max: KEPT });
  readonly #ended = new LRUCache<string, true>({ max: KEPT });

  /** @returns what is good now, as far as this process knows; undefined when it must be opened */
  async current(session: OpenSession, route: string): Promise<Leg | undefined> {
    const later = await this.#later.get(`${session.name} ${route}`)?.catch(() => undefined);
    return later ?? sealedLeg(session, route);
  }

  /**
   * Opens a leg anew; of several requests that find it gone, one does and the others wait.
   *
   * @param gone the leg that the upstream no longer knows
   */
  async renew(
    session: OpenSession,
    route: string,
    gone: Leg | undefined,
    open: () => Promise<Leg>,
  ): Promise<Leg> {
    const name = `${session.name} ${route}`;
    const known = this.#later.get(name);
    const later = await known?.catch(() => undefined);
    if (later && later.id !== gone?.id) return later;
    const other = this.#later.get(name);
    if (other && other !== known) return other;
    const opening = open();
    this.#later.set(name, opening);
    opening.catch(() => {
      if (this.#later.get(name) === opening) this.#later.delete(name);
    });
    return opening;
  }

  /** The client ended the session: this process answers 404 from now on. */
  end({ name }: OpenSession, routes: readonly string[]): void {
    this.#ended.set(name, true);
    for (const route of routes) this.#later.delete(`${name} ${route}`);
  }

  hasEnded({ name }: OpenSession): boolean {
    return this.#ended.has(name);
  }
}
