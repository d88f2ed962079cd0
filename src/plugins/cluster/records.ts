import type { ClusterStanding } from '../../core/contracts/cluster.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { EventOf } from '../../core/kernel/actors/definition.ts';
import { version as ownVersion } from '../../core/kernel/version.ts';
import { isMirrorBehind } from '../../machines/cluster/host.ts';
import { hostActor, singletonActor } from './actors.ts';
import { GONE_MS } from './durations.ts';
import type { OrphanedBranch } from './mirror/orphans.ts';
import type { HeardHost } from './presence/beat.ts';

/** How often the other hosts and the mirror are looked at, milliseconds. */
const LOOK_MS = 1_000;
/** A look that comes so late says that this process stood still itself, milliseconds. */
const STOOD_STILL_MS = 4_000;
/** A host that has not read for so long what the others said is told of, milliseconds. */
const BEHIND_MS = 5_000;
/** So long may an election of new streams take: a host that has just started is not cut off yet, milliseconds. */
const FIRST_ELECTION_MS = 12_000;
/** Until beats prove again what they can prove, milliseconds. */
const WAKING_MS = 3_000;

/** What is looked at. */
export interface Watched {
  readonly host: string;
  /** The other hosts with when they were heard last, by `Clock.monotonic`. */
  readonly heard: () => ReadonlyMap<string, HeardHost>;
  readonly standing: () => Pick<ClusterStanding, 'silentMs' | 'isIsolated' | 'isBehind'>;
  readonly lag: () => { readonly records: number; readonly ms: number };
  /** The host that holds a singleton, as far as this one knows. */
  readonly holderOf: (singleton: string) => string | undefined;
}

interface RecordingServices extends Pick<Services, 'clock' | 'logger'> {
  readonly actors: Pick<Services['actors'], 'get' | 'send'>;
}

type SingletonEvent = EventOf<typeof singletonActor.machine>;
type HostEvent = EventOf<typeof hostActor.machine>;

/** Records what becomes of singletons and hosts, as this host sees it, each time that it changes. */
export class ClusterRecords {
  readonly #services: RecordingServices;
  #watched: Watched | undefined;
  #singletons: readonly string[] = [];
  /** The run of each host that said that it stops: its last beats say nothing new. */
  readonly #left = new Map<string, string>();
  #lookedAt = 0;
  /** Until when silence of this host, and of the others, may be its own fault. */
  #wakesUntil = 0;
  #deafUntil = 0;
  /** Since its start. */
  #hasReachedQuorum = false;
  #cancel: () => void = () => {};

  constructor(services: RecordingServices) {
    this.#services = services;
  }

  /** Begins to look at the others. @param singletons that this host competes for */
  watch(watched: Watched, singletons: readonly string[]): void {
    this.#watched = watched;
    this.#singletons = singletons;
    this.#lookedAt = this.#services.clock.monotonic();
    for (const name of singletons) this.singleton(name, { type: 'STARTED', at: this.#now });
    this.#arm();
  }

  stop(): void {
    this.#cancel();
    this.#watched = undefined;
  }

  /** @returns how long this host should leave the singleton to others, milliseconds; 0 when it need not */
  singleton(name: string, event: SingletonEvent): number {
    const { actors } = this.#services;
    actors.send(singletonActor, name, event);
    return actors.get(singletonActor, name)?.context.withholdMs ?? 0;
  }

  /** Records an orphaned branch, once. @param host this one */
  orphaned({ singleton, by, types, after, to, records = 0 }: OrphanedBranch, host: string): void {
    if (to === undefined || records === 0) return;
    const { branches = [] } = this.#services.actors.get(singletonActor, singleton)?.context ?? {};
    if (branches.some((one) => one.from === after + 1 && one.to === to)) return;
    this.singleton(singleton, {
      type: 'ORPHANED',
      at: this.#now,
      host,
      by,
      types,
      from: after + 1,
      to,
      count: records,
    });
  }

  /** The stream of this host was replaced. */
  replaced(host: string, incarnation: number, reason: string): void {
    this.#host(host, { type: 'STREAM_REPLACED', at: this.#now, to: String(incarnation), reason });
  }

  refused(host: string, version: string): void {
    this.#host(host, { type: 'VERSION_REFUSED', at: this.#now, version, ownVersion });
  }

  /** A host said that it stops. */
  left(host: string): void {
    const run = this.#watched?.heard().get(host)?.run;
    if (run !== undefined) this.#left.set(host, run);
    this.#host(host, { type: 'LEFT', at: this.#now });
  }

  #arm(): void {
    this.#cancel = this.#services.clock.after(LOOK_MS, () => {
      try {
        this.#look();
      } catch (error) {
        // E.g. a log that took nothing for long, before which too many events wait: what is not recorded now is at the next look.
        this.#services.logger.warn({ err: error }, 'cluster.not_recorded');
      }
      if (this.#watched) this.#arm();
    });
  }

  /** Sends what changed since the actors heard of it last: nothing, most of the time. */
  #look(): void {
    const watched = this.#watched;
    if (!watched) return;
    const { clock } = this.#services;
    const [at, now] = [this.#now, clock.monotonic()];
    const own = watched.host;
    const { silentMs, isIsolated, isBehind } = watched.standing();
    if (now - this.#lookedAt > STOOD_STILL_MS) this.#wakesUntil = now + WAKING_MS;
    this.#lookedAt = now;
    // Who hears nobody cannot say who is lost.
    if (isIsolated || now < this.#wakesUntil) this.#deafUntil = now + GONE_MS;
    for (const { host, run, version, heardMs } of watched.heard().values()) {
      if (this.#left.get(host) === run) continue;
      const unheardMs = Math.round(now - heardMs);
      const presence = this.#region(host, 'presence');
      if (unheardMs > GONE_MS) {
        if (presence === 'heard' && now >= this.#deafUntil)
          this.#host(host, { type: 'LOST', at, silentMs: unheardMs });
      } else if (presence !== 'heard' || this.#version(host) !== version) {
        this.#host(host, { type: 'HEARD', at, version });
      }
    }
    if (!isIsolated) this.#hasReachedQuorum = true;
    const link = this.#region(own, 'link');
    // What is read within some seconds is no news.
    const usualMs = !this.#hasReachedQuorum ? FIRST_ELECTION_MS : isBehind ? BEHIND_MS : 0;
    const isTold = isIsolated && now >= this.#wakesUntil && silentMs > usualMs;
    if (isTold && link !== 'isolated')
      this.#host(own, {
        ...{ type: 'ISOLATED', at, silentMs: Math.round(silentMs) },
        ...(isBehind && { isBehind }),
      });
    else if (!isIsolated && link === 'isolated') this.#host(own, { type: 'CONNECTED', at });
    const { records, ms } = watched.lag();
    const lag = { records, ms };
    const mirror = this.#region(own, 'mirror');
    if (isMirrorBehind(lag)) {
      if (mirror !== 'behind') this.#host(own, { type: 'MIRROR_BEHIND', at, ...lag });
    } else if (mirror === 'behind') this.#host(own, { type: 'MIRROR_CAUGHT_UP', at });
    for (const name of this.#singletons) this.#follow(name, watched, at);
  }

  #follow(name: string, { host, holderOf, heard }: Watched, at: number): void {
    const holder = holderOf(name);
    // It may have the lease for a moment and fail to begin, as this host did.
    if (holder !== undefined && !heard().get(holder)?.holds.includes(name)) return;
    const actor = this.#services.actors.get(singletonActor, name);
    if (holder === undefined || holder === host || actor?.value !== 'following') return;
    if (actor.context.holder !== holder) this.singleton(name, { type: 'FOLLOWED', at, holder });
  }

  #version(host: string): string | undefined {
    return this.#services.actors.get(hostActor, host)?.context.version;
  }

  #region(host: string, name: 'presence' | 'mirror' | 'link'): string | undefined {
    const value = this.#services.actors.get(hostActor, host)?.value;
    return value?.[name];
  }

  #host(host: string, event: HostEvent): void {
    this.#services.actors.send(hostActor, host, event);
  }

  get #now(): number {
    return this.#services.clock.now();
  }
}
