import { GONE_MS } from '../durations.ts';

/** A message that another host has read is here as soon as this host has asked for it; a beat tells of it within half a second. */
const LATE_MS = 1_000;

/** How far a host has read the messages to every host. */
export interface ReadPlace {
  readonly incarnation: string;
  readonly seq: number;
}

interface HostAhead {
  readonly place: ReadPlace;
  /** When it was heard first, and when that host was heard last, by `Clock.monotonic`. */
  readonly since: number;
  readonly heardAt: number;
}

/**
 * What others have read and this host has not: e.g. that a key was revoked. While the stream has no leader, or is another one that this host has not
 * found yet, beats are acknowledged all the same, and nothing else says that this host lacks something.
 */
export class HostsAhead {
  readonly #now: () => number;
  readonly #own: () => ReadPlace;
  readonly #ahead = new Map<string, HostAhead>();

  /** @param now monotonic, milliseconds @param own how far this host has read */
  constructor(now: () => number, own: () => ReadPlace) {
    this.#now = now;
    this.#own = own;
  }

  /** @param host that says with its newest beat how far it has read */
  hear(host: string, place: ReadPlace): void {
    const now = this.#now();
    const known = this.#ahead.get(host);
    const isFurther = known?.place.incarnation === place.incarnation && known.place.seq <= place.seq;
    if (known && isFurther && !this.#has(known.place)) this.#ahead.set(host, { ...known, heardAt: now });
    else if (this.#has(place)) this.#ahead.delete(host);
    else this.#ahead.set(host, { place, since: now, heardAt: now });
  }

  /** For how long this host has lacked what another one has read, milliseconds; undefined while it may just be on its way. */
  get behindMs(): number | undefined {
    const now = this.#now();
    let longest: number | undefined;
    for (const [host, { place, since, heardAt }] of this.#ahead) {
      if (this.#has(place) || now - heardAt > GONE_MS) this.#ahead.delete(host);
      else if (now - since > LATE_MS) longest = Math.max(longest ?? 0, now - since);
    }
    return longest;
  }

  /** A stream that was made earlier is one that this host has left. */
  #has({ incarnation, seq }: ReadPlace): boolean {
    const own = this.#own();
    if (seq === 0) return true;
    return own.incarnation === incarnation
      ? own.seq >= seq
      : Date.parse(own.incarnation) > Date.parse(incarnation);
  }
}
