import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Answers, Cluster } from '../../core/contracts/cluster.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { KeyRing } from './key-ring.ts';

/** A producer with when it was seen with a key, epoch milliseconds. */
export interface SeenProducer {
  readonly producer: string;
  readonly at: number;
}

const SIGHTINGS = 'collector.sightings';
const IN_FORCE = 'collector.key_in_force';
const ASK_MS = 2_000;
const LOOK_MS = 100;
const MOST_LOOKS = 50;
/** Of a key, that a host tells another one. */
const MOST_TOLD = 100;

const ALONE: Answers = { answers: [], unanswered: [] };

const fingerprint = z.string().max(100);
/** `isOld`: it is or was replaced, so a producer that still sends it is worth remembering. */
const question = z.object({ key: fingerprint, isOld: z.boolean() });
const told = z.array(z.object({ producer: z.string().max(200), agoMs: z.number().min(0) })).max(MOST_TOLD);
const isInForce = z.boolean();

/** What all hosts of a cluster know of the ingest keys: the one that rotates them asks the others. */
export class KeysEverywhere {
  readonly #ring: KeyRing;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #cluster: Pick<Cluster, 'ask'> | undefined;

  /** @param cluster absent where this host is alone */
  constructor(ring: KeyRing, clock: Pick<Clock, 'now'>, cluster?: Pick<Cluster, 'ask' | 'onAsked'>) {
    this.#ring = ring;
    this.#clock = clock;
    this.#cluster = cluster;
    cluster?.onAsked(SIGHTINGS, (body) => {
      const { data } = question.safeParse(body);
      if (!data) return undefined;
      if (data.isOld) ring.watchRetired([data.key]);
      const now = clock.now();
      // Wall clocks of two hosts may differ by minutes: how long ago it was does not.
      const newest = this.#own(data.key, data.isOld).slice(-MOST_TOLD);
      return newest.map(({ producer, at }) => ({ producer, agoMs: Math.max(0, now - at) }));
    });
    cluster?.onAsked(IN_FORCE, (body) => {
      const { data } = fingerprint.safeParse(body);
      return data === undefined ? undefined : ring.fingerprints.includes(data);
    });
  }

  /**
   * The producers that were seen with a key on any host, those seen last at the end.
   *
   * @param key its fingerprint
   * @param isOld also with the keys that end with it
   */
  async sightings(key: string, isOld: boolean): Promise<SeenProducer[]> {
    const { answers } = (await this.#cluster?.ask(SIGHTINGS, { key, isOld }, ASK_MS)) ?? ALONE;
    const now = this.#clock.now();
    const newest = new Map(this.#own(key, isOld).map(({ producer, at }) => [producer, at]));
    for (const { answer } of answers) {
      for (const { producer, agoMs } of told.safeParse(answer).data ?? [])
        newest.set(producer, Math.max(newest.get(producer) ?? 0, now - agoMs));
    }
    const seen = [...newest].map(([producer, at]) => ({ producer, at }));
    return seen.sort((one, other) => one.at - other.at);
  }

  /** The other hosts that do not admit by a key, or do not say so, after some seconds in which they may learn of it. */
  async lacking(key: string, signal: AbortSignal): Promise<string[]> {
    for (let looks = 1; ; looks += 1) {
      const { answers, unanswered } = (await this.#cluster?.ask(IN_FORCE, key, ASK_MS)) ?? ALONE;
      const without = answers.filter(({ answer }) => isInForce.safeParse(answer).data === false);
      const lack = [...without.map(({ host }) => host), ...unanswered];
      if (lack.length === 0 || looks >= MOST_LOOKS) return lack;
      await sleep(LOOK_MS, undefined, { signal });
    }
  }

  /** Of an old key with those that end with it: their producers have to move, too. Those seen last at the end. */
  #own(key: string, isOld: boolean): SeenProducer[] {
    const keys = isOld ? new Set([key, ...this.#ring.leaving]) : [key];
    const seen = [...keys].flatMap((one) => this.#ring.sightings(one));
    return seen.sort((one, other) => one.at - other.at).map(({ producer, at }) => ({ producer, at }));
  }
}
