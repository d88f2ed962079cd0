import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EndedSessions } from '../session/ended-sessions.ts';

const KEPT = 10_000;

/**
 * Sessions with upstreams that were begun again behind their client's (`reinitialise` of a route). A memory and no table:
 * what is forgotten here costs another `initialize`.
 */
export class RenewedSessions {
  /** The upstream's own session by the sealed id of the client's; empty where the upstream keeps none any more. */
  readonly #renewed = new LRUCache<string, Promise<string>>({ max: KEPT });
  readonly #ended: EndedSessions;

  constructor(ended: EndedSessions) {
    this.#ended = ended;
  }

  /** @param sealed the client's session id @param own the upstream's as it began @returns the upstream's own session now */
  async current(sealed: string, own: string): Promise<string> {
    return (await this.#renewed.get(nameOf(sealed))?.catch(() => undefined)) ?? own;
  }

  /**
   * Begins a session again; of several requests that find it gone, one does and the others wait.
   *
   * @param gone the upstream's own session that it no longer knows
   */
  async renew(sealed: string, gone: string, begin: () => Promise<string>): Promise<string> {
    const name = nameOf(sealed);
    const known = this.#renewed.get(name);
    const later = await known?.catch(() => undefined);
    if (later !== undefined && later !== gone) return later;
    const other = this.#renewed.get(name);
    if (other && other !== known) return other;
    const beginning = begin();
    this.#renewed.set(name, beginning);
    beginning.catch(() => {
      if (this.#renewed.get(name) === beginning) this.#renewed.delete(name);
    });
    return beginning;
  }

  /** The client has ended it: it is not begun again. */
  end(sealed: string): void {
    this.#ended.end(nameOf(sealed));
  }

  hasEnded(sealed: string): boolean {
    return this.#ended.has(nameOf(sealed));
  }
}

const nameOf = (sealed: string): string => hash('sha256', sealed, 'base64url');
