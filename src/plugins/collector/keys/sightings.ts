import { PROBE_SERVICE } from '../../../core/contracts/columnar-database.ts';

/** Which key was last seen of which producer. */
export interface Sighting {
  readonly fingerprint: string;
  readonly producer: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

const MOST_KEYS = 16;
const MOST_PRODUCERS = 256;
const LONGEST_NAME = 100;

/** Silent for so long, ms, a producer gives its place to another first. */
const SILENT_MS = 3_600_000;

interface Known {
  readonly first: number;
  readonly at: number;
}

/**
 * Remembers the newest sighting per key and producer. Whoever has a key may call itself by ever new names: of more than
 * it may hold, those go that were silent for long, then those that are known for the shortest time; none that is awaited.
 */
export class Sightings {
  readonly #keys = new Map<string, Map<string, Known>>();
  readonly #isAwaited: (producer: string) => boolean;

  /** @param isAwaited whether a rotation waits for a producer, by its cleaned name */
  constructor(isAwaited: (producer: string) => boolean = () => false) {
    this.#isAwaited = isAwaited;
  }

  /**
   * @param producer as it calls itself: it is cut and cleaned
   * @returns whether it is seen with this key for the first time
   */
  see(fingerprint: string, producer: string, at: number): boolean {
    // A probe has another name each time, and none of them comes back.
    if (producer.startsWith(PROBE_SERVICE)) return false;
    const producers = renew(this.#keys, fingerprint, this.#keys.get(fingerprint) ?? new Map());
    const [leastUsed] = this.#keys.size > MOST_KEYS ? this.#keys.keys() : [];
    if (leastUsed !== undefined) this.#keys.delete(leastUsed);
    const name = cleaned(producer);
    const known = producers.get(name);
    renew(producers, name, { first: known?.first ?? at, at });
    if (producers.size > MOST_PRODUCERS) producers.delete(this.#lessWorth(producers, name, at) ?? name);
    return known === undefined;
  }

  /** Newest last. */
  of(fingerprint: string): Sighting[] {
    const seen = [...(this.#keys.get(fingerprint) ?? [])];
    return seen.map(([producer, { at }]) => ({ fingerprint, producer, at }));
  }

  /** Whose place another takes; undefined when everybody's is worth more. */
  #lessWorth(producers: ReadonlyMap<string, Known>, newcomer: string, now: number): string | undefined {
    let newest: [name: string, first: number] | undefined;
    for (const [name, { first, at }] of producers) {
      if (name === newcomer || this.#isAwaited(name)) continue;
      if (now - at > SILENT_MS) return name;
      if (newest === undefined || first >= newest[1]) newest = [name, first];
    }
    return newest?.[0];
  }
}

/** Puts an entry at the end: a map is kept in the order of use. */
function renew<V>(map: Map<string, V>, key: string, value: V): V {
  map.delete(key);
  map.set(key, value);
  return value;
}

function cleaned(name: string): string {
  const clean = name.slice(0, LONGEST_NAME).replace(/\p{C}/gu, ' ').trim();
  // Names become keys of records, and no record has a key `__proto__`.
  return clean === '' || clean === '__proto__' ? 'unnamed' : clean;
}
