import { PROBE_SERVICE } from '../../../core/adapters/columnar-database.ts';

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

/** Remembers the newest sighting per key and producer; of more than it may hold, the oldest go. */
export class Sightings {
  readonly #keys = new Map<string, Map<string, number>>();

  /**
   * @param producer as it calls itself: it is cut and cleaned
   * @returns whether it is seen with this key for the first time
   */
  see(fingerprint: string, producer: string, at: number): boolean {
    // A probe has another name each time, and none of them comes back.
    if (producer.startsWith(PROBE_SERVICE)) return false;
    const producers = renew(this.#keys, fingerprint, this.#keys.get(fingerprint) ?? new Map(), MOST_KEYS);
    const name = cleaned(producer);
    const isFirst = !producers.has(name);
    renew(producers, name, at, MOST_PRODUCERS);
    return isFirst;
  }

  /** Newest last. */
  of(fingerprint: string): Sighting[] {
    const seen = [...(this.#keys.get(fingerprint) ?? [])];
    return seen.map(([producer, at]) => ({ fingerprint, producer, at }));
  }
}

/** A map is kept in the order of use: the first of it is the one that was unused for longest. */
function renew<V>(map: Map<string, V>, key: string, value: V, most: number): V {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.size > most ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
  return value;
}

function cleaned(name: string): string {
  const clean = name.slice(0, LONGEST_NAME).replace(/\p{C}/gu, ' ').trim();
  // Names become keys of records, and no record has a key `__proto__`.
  return clean === '' || clean === '__proto__' ? 'unnamed' : clean;
}
