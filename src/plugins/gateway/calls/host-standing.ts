import type { Cluster, ClusterStanding } from '../../../core/contracts/cluster.ts';
import { isObject, type Json } from '../../../core/kernel/json.ts';
import type { Verdict } from '../../../machines/gateway/call-shapes.ts';
import type { ClusterFacts } from '../../../machines/gateway/cluster-facts.ts';
import { slotOf } from '../../../machines/gateway/key-limits.ts';
import { cutOff } from '../../../machines/gateway/key-rules.ts';
import type { KeyDirectory } from '../keys/virtual-keys.ts';
import type { KeyUsage } from './key-usage.ts';

/** What hosts say of their open calls with every beat: by key, how many calls and streams. */
const OPEN = 'gateway.open';
/** After messages were missed it is not known what hosts were granted of a minute: until that minute is over. */
const CLOSED_MS = 60_000;
/** Keys that a host announces: an entry of a key has 51 bytes at most with counts of five digits, and announcements have 32 KiB together. */
const MOST_KEYS = 600;

interface StandingOptions {
  /** For how long this host serves keys that it knows while it is cut off, milliseconds. */
  readonly graceMs: number;
  readonly usage: KeyUsage;
  readonly keys: Pick<KeyDirectory, 'get'>;
}

type Standing = Pick<Cluster, 'host' | 'standing' | 'announce' | 'announced'>;

/** How this host stands to the others of its cluster, for the decision about a call (C13, G16). */
export class HostStanding {
  readonly #cluster: Standing;
  readonly #options: StandingOptions;

  constructor(cluster: Standing, options: StandingOptions) {
    this.#cluster = cluster;
    this.#options = options;
    cluster.announce(OPEN, () => this.#limited());
  }

  /** @param key of the call @param method as in `CallRequest` */
  facts(key: string, method: string): ClusterFacts {
    const { host } = this.#cluster;
    const standing = this.#cluster.standing();
    const { hosts, missedMs = CLOSED_MS } = standing;
    return {
      host,
      hosts,
      ...this.#isolation(standing),
      ...(missedMs < CLOSED_MS && { closedMs: Math.ceil(CLOSED_MS - missedMs) }),
      ...this.#open(key, method),
    };
  }

  /** @returns why a call that was admitted earlier must not begin now; undefined when it may */
  refusal(writes: boolean): Verdict | undefined {
    return cutOff(this.#isolation(this.#cluster.standing()), writes);
  }

  /**
   * Calls that are open must end where the end of their key may be unknown: streams of routes that write at once, the others after the
   * grace. What an upstream is carrying out comes to its end meanwhile, for nobody knows what a part of it did.
   *
   * @returns whether a call must; undefined while this host is connected
   */
  ending(): ((call: { readonly isStream: boolean; readonly writes: boolean }) => boolean) | undefined {
    const { isIsolated, silentMs } = this.#cluster.standing();
    if (!isIsolated) return undefined;
    const isOver = silentMs >= this.#options.graceMs;
    return ({ isStream, writes }) => isOver || (isStream && writes);
  }

  #isolation({
    isIsolated,
    isBehind,
    silentMs,
  }: ClusterStanding): Pick<ClusterFacts, 'isolatedMs' | 'graceMs' | 'isBehind'> {
    // The grace is for a host that is cut off: one that reads what it missed knows in a moment.
    const graceMs = isBehind ? 0 : this.#options.graceMs;
    if (!isIsolated) return {};
    return { isolatedMs: Math.round(silentMs), graceMs, ...(isBehind && { isBehind }) };
  }

  /**
   * What the hosts last said to have open of a key that may only have so much open. Of this one only what the others know counts: who told
   * nothing keeps to its even part.
   */
  #open(key: string, method: string): Pick<ClusterFacts, 'openAtBeat' | 'openElsewhere'> {
    const slot = slotOf(method);
    const { maxParallel, maxStreams } = this.#options.keys.get(key)?.context.terms ?? {};
    const limit = slot === 'stream' ? maxStreams : maxParallel;
    if (slot === undefined || limit === undefined) return {};
    const at = slot === 'call' ? 0 : 1;
    let [openAtBeat, openElsewhere] = [0, 0];
    for (const [host, said] of this.#cluster.announced(OPEN)) {
      if (host === this.#cluster.host) openAtBeat = saidOf(said, key, at);
      else openElsewhere += saidOf(said, key, at);
    }
    return { openAtBeat, openElsewhere };
  }

  /** A key that the others know of stays announced: what it has open here would seem to have ended. */
  #limited(): Json {
    const { usage, keys } = this.#options;
    const open = usage.openByKey().filter(([key]) => {
      const { maxParallel, maxStreams } = keys.get(key)?.context.terms ?? {};
      return maxParallel !== undefined || maxStreams !== undefined;
    });
    const said = this.#cluster.announced(OPEN).get(this.#cluster.host);
    const isKnown = ([key]: (typeof open)[number]): boolean => isObject(said) && Object.hasOwn(said, key);
    const first = [...open.filter(isKnown), ...open.filter((one) => !isKnown(one))];
    return Object.fromEntries(first.slice(0, MOST_KEYS));
  }
}

function saidOf(said: Json, key: string, at: 0 | 1): number {
  const counts = isObject(said) && Object.hasOwn(said, key) ? said[key] : undefined;
  const count: unknown = Array.isArray(counts) ? counts[at] : undefined;
  return typeof count === 'number' && count > 0 ? count : 0;
}
