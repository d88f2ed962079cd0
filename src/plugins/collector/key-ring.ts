import { timingSafeEqual } from 'node:crypto';
import { PROBE_SERVICE } from '../../core/contracts/columnar-tables.ts';
import type { IngestJudgement, IngestKeys, KnownIngestKey } from '../../core/contracts/ingest-keys.ts';
import type { Vault } from '../../core/host/secrets/vault.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { CollectorError } from './errors.ts';

/** The keys in force. */
export interface RingKeys {
  /** Everything that is accepted. */
  readonly tokens: readonly string[];
  /** The one that is handed to producers; one of them. */
  readonly current?: string | undefined;
  /** Those of them that no rotation made, and that end with the key that it retires. */
  readonly leaving?: readonly string[];
  /** Why there is no current key. */
  readonly reason?: string | undefined;
}

/** A longer value is no key, and is refused without computing its fingerprint. */
const LONGEST_TOKEN = 1_024;
const PREFIX = /^bearer[ \t]+/i;

/**
 * The keys that admit producers. A presented key is compared by its keyed fingerprint with all accepted keys, so that
 * the time of the comparison reveals nothing.
 */
export class KeyRing implements IngestKeys {
  readonly #vault: Vault;
  readonly #clock: Clock;
  readonly #seenFirst: (seen: Sighting) => void;
  readonly #sightings: Sightings;
  #keys: RingKeys = { tokens: [], reason: 'nothing was read yet' };
  #accepted: readonly Buffer[] = [];
  #legacyToken: Buffer | undefined;
  #watched: readonly string[] = [];

  /**
   * @param seenFirst called when a producer is seen with a key for the first time; it must not throw
   * @param isAwaited whether a rotation waits for a producer: it is never forgotten to make room for others
   */
  constructor(
    vault: Vault,
    clock: Clock,
    seenFirst: (seen: Sighting) => void = () => {},
    isAwaited?: (producer: string) => boolean,
  ) {
    this.#vault = vault;
    this.#clock = clock;
    this.#seenFirst = seenFirst;
    this.#sightings = new Sightings(clock, isAwaited);
  }

  /** Accepts these keys from now on, and no others. */
  accept(keys: RingKeys): void {
    this.#keys = keys;
    this.#accepted = keys.tokens.map((token) => this.#digest(token));
  }

  /**
   * The old token `otel_ingest_token` never admitted anybody; the answer to a producer that sends it names the key to use.
   *
   * @param token undefined when there is none
   */
  setLegacyToken(token: string | undefined): void {
    this.#legacyToken = token === undefined ? undefined : this.#digest(token);
  }

  /** Sightings of these keys are remembered although they are refused: retired ones, by fingerprint. */
  watchRetired(fingerprints: readonly string[]): void {
    this.#watched = fingerprints;
  }

  judge(presented: string, producer: string): IngestJudgement {
    if (presented === '' || presented.length > LONGEST_TOKEN) return { kind: 'unknown' };
    const digest = this.#digest(presented);
    const fingerprint = digest.toString('latin1');
    const accepted = this.#fits(digest);
    if (accepted || this.#watched.includes(fingerprint)) {
      const at = this.#clock.now();
      if (this.#sightings.see(fingerprint, producer)) this.#seenFirst({ fingerprint, producer, at });
    }
    if (accepted) return { kind: 'accepted', fingerprint };
    if (this.#legacyToken && timingSafeEqual(this.#legacyToken, digest)) return { kind: 'legacyToken' };
    const bare = presented.replace(PREFIX, '');
    if (bare !== presented && bare !== '' && this.#fits(this.#digest(bare))) return { kind: 'prefixed' };
    return { kind: 'unknown' };
  }

  async current(): Promise<string> {
    const { current, reason } = this.#keys;
    if (current !== undefined) return current;
    throw new CollectorError('HF_COLLECTOR_NO_KEY', { reason: reason ?? 'the collector has none' });
  }

  /** Fingerprints of what is accepted, that of the current key first. */
  get fingerprints(): readonly string[] {
    const { tokens, current } = this.#keys;
    const ordered = current === undefined ? tokens : [current, ...tokens.filter((one) => one !== current)];
    return ordered.map((token) => this.fingerprintOf(token));
  }

  /** Fingerprints of the keys that end with the one that a rotation retires. */
  get leaving(): readonly string[] {
    return (this.#keys.leaving ?? []).map((token) => this.fingerprintOf(token));
  }

  known(): KnownIngestKey[] {
    const current = this.#keys.current;
    return this.fingerprints.map((fingerprint, index) => ({
      fingerprint,
      isCurrent: index === 0 && current !== undefined,
      producers: this.sightings(fingerprint).map(({ producer, at }) => ({ producer, at })),
    }));
  }

  fingerprintOf(token: string): string {
    return this.#vault.fingerprint(token);
  }

  /** Who was seen with a key, accepted or watched for; newest last. */
  sightings(fingerprint: string): readonly Sighting[] {
    return this.#sightings.of(fingerprint);
  }

  /** With which key a producer was seen last, also with one that admits no longer; undefined when it was never seen. */
  newestSighting(producer: string): Sighting | undefined {
    return this.#sightings.newestOf(producer);
  }

  #fits(digest: Buffer): boolean {
    let fits = false;
    for (const accepted of this.#accepted) fits = timingSafeEqual(accepted, digest) || fits;
    return fits;
  }

  #digest(token: string): Buffer {
    return Buffer.from(this.fingerprintOf(token), 'latin1');
  }
}

/** The key that each producer used last. */
export interface Sighting {
  readonly fingerprint: string;
  readonly producer: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

const MOST_KEYS = 16;
const MOST_PRODUCERS = 256;
const LONGEST_NAME = 100;

/** A producer that was silent for this long is the first to be forgotten for another, milliseconds. */
const SILENT_MS = 3_600_000;

/** When a producer was seen with a key, by the time that passes, milliseconds. */
interface SeenAt {
  readonly first: number;
  readonly at: number;
}

/**
 * Remembers the newest sighting per key and producer. A producer can send any number of names, so the number of sightings is
 * bounded: the first to be forgotten are producers that were silent for long, then the newest ones; awaited ones are kept.
 */
class Sightings {
  readonly #keys = new Map<string, Map<string, SeenAt>>();
  readonly #clock: Clock;
  readonly #isAwaited: (producer: string) => boolean;

  /** @param isAwaited whether a rotation waits for a producer, by its cleaned name */
  constructor(clock: Clock, isAwaited: (producer: string) => boolean = () => false) {
    this.#clock = clock;
    this.#isAwaited = isAwaited;
  }

  /**
   * @param producer as it calls itself: it is cut and cleaned
   * @returns whether it is seen with this key for the first time
   */
  see(fingerprint: string, producer: string): boolean {
    // Each probe has a name of its own, which is never seen again.
    if (producer.startsWith(PROBE_SERVICE)) return false;
    const producers = renew(this.#keys, fingerprint, this.#keys.get(fingerprint) ?? new Map());
    const [leastUsed] = this.#keys.size > MOST_KEYS ? this.#keys.keys() : [];
    if (leastUsed !== undefined) this.#keys.delete(leastUsed);
    const name = cleaned(producer);
    const at = this.#clock.monotonic();
    const before = producers.get(name);
    renew(producers, name, { first: before?.first ?? at, at });
    if (producers.size > MOST_PRODUCERS) producers.delete(this.#leastNeeded(producers, name, at) ?? name);
    return before === undefined;
  }

  /** Newest last, with times by the clock as it is set now. */
  of(fingerprint: string): Sighting[] {
    const seen = [...(this.#keys.get(fingerprint) ?? [])];
    const began = this.#clock.now() - this.#clock.monotonic();
    return seen.map(([producer, { at }]) => ({ fingerprint, producer, at: Math.round(began + at) }));
  }

  newestOf(producer: string): Sighting | undefined {
    const seen = [...this.#keys.keys()].flatMap((fingerprint) => this.of(fingerprint));
    return seen.filter((one) => one.producer === producer).sort((one, other) => other.at - one.at)[0];
  }

  /** The producer to forget for a new one; undefined when all others are kept. */
  #leastNeeded(producers: ReadonlyMap<string, SeenAt>, newcomer: string, now: number): string | undefined {
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
  // Names become keys of objects, where `__proto__` would set the prototype.
  return clean === '' || clean === '__proto__' ? 'unnamed' : clean;
}
