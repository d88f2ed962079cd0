import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { version } from '../../../core/kernel/version.ts';
import type { Era } from '../mcp/protocol.ts';
import { NEWEST_SESSIONED } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import type { EndedSessions } from '../session/ended-sessions.ts';
import type { Session } from '../session/sealed-sessions.ts';

const KEPT = 10_000;
const ERA_KEPT_MS = 5 * 60_000;

/** The gateway as a server, and toward upstreams that it asks for itself. */
export const serverInfo = { name: 'holdfast', version } as const;

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

/** The session kept for a caller that has none, toward upstreams that want one. @param caller its key and token */
export const bridgeFor = (caller: string): OpenSession => ({
  name: hash('sha256', `bridge\n${caller}`, 'base64url'),
  state: { upstream: {}, version: NEWEST_SESSIONED, client: { capabilities: {}, clientInfo: serverInfo } },
});

/** @returns the leg that was there when the session began */
function sealedLeg({ state }: OpenSession, route: string): Leg | undefined {
  if (!Object.hasOwn(state.upstream, route)) return undefined;
  return { id: state.upstream[route] ?? '', version: state.versions?.[route] ?? state.version };
}

/**
 * Legs that came after their session's id was sealed: an upstream has restarted, or was away when the session began. A
 * memory and no table: what is forgotten here costs another `initialize`, and no client notices.
 */
export class Legs {
  readonly #later = new LRUCache<string, Promise<Leg>>({ max: KEPT });
  /** What kind of revision upstreams speak, by name and URL. */
  readonly #eras = new LRUCache<string, Promise<Era | undefined>>({ max: 1_000, ttl: ERA_KEPT_MS });
  readonly #ended: EndedSessions;

  constructor(ended: EndedSessions) {
    this.#ended = ended;
  }

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

  /** @param probe asks the upstream; what it does not say is asked again */
  eraOf({ name, url }: Route, probe: () => Promise<Era | undefined>): Promise<Era | undefined> {
    const upstream = `${name} ${url?.href}`;
    const known = this.#eras.get(upstream);
    if (known) return known;
    const probed = probe();
    this.#eras.set(upstream, probed);
    const forget = () => {
      if (this.#eras.peek(upstream) === probed) this.#eras.delete(upstream);
    };
    probed.then((era) => era ?? forget(), forget);
    return probed;
  }

  /** The client ended the session: it is answered 404 from now on. */
  end({ name }: OpenSession, routes: readonly string[]): void {
    this.#ended.end(name);
    for (const route of routes) this.#later.delete(`${name} ${route}`);
  }

  hasEnded({ name }: OpenSession): boolean {
    return this.#ended.has(name);
  }
}
