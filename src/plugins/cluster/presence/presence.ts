import type { ClusterStanding } from '../../../core/contracts/cluster.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { GONE_MS, SILENT_MS } from '../durations.ts';

/** Unheard for longer: a host is not listed any more. */
const FORGOTTEN_MS = 3_600_000;

/** What hosts announce with their beats, by name. */
export type Announced = Readonly<Record<string, Json>>;

interface Heard {
  readonly host: string;
  /** When its newest beat arrived, by `Clock.monotonic` of this process. */
  readonly heardMs: number;
  readonly announced: Announced;
}

/**
 * Who of a cluster is there, as far as this host can know: what it hears of the others, what a quorum has of it, and since when
 * (docs/cluster.md, "Beats"). While it is cut off, the others are there all the same: those that were there before count, with what they said.
 */
export class Presence<Host extends Heard> {
  readonly #clock: Clock;
  /** This host. */
  readonly #host: string;
  readonly #began: number;
  readonly #heard = new Map<string, Host>();
  /** When the newest message was sent of which a quorum is known to have it. */
  #provenAt: number | undefined;
  /** The same of a beat, and what it announced. */
  #stored: { readonly sentAt: number; readonly announced: Announced } | undefined;
  /** When the timer of the beats came due last, and when that was after more than 2 s: this process had stood still. */
  #tickedAt: number;
  #wokeAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, host: string) {
    this.#clock = clock;
    this.#host = host;
    this.#began = clock.monotonic();
    this.#tickedAt = this.#began;
  }

  /** The timer of the beats came due, or begins. */
  ticked(): void {
    const now = this.#clock.monotonic();
    if (now - this.#tickedAt > SILENT_MS) this.#wokeAt = now;
    this.#tickedAt = now;
  }

  /** A beat of another host arrived. */
  hear(heard: Host): void {
    this.#heard.set(heard.host, heard);
    const forget = heard.heardMs - FORGOTTEN_MS;
    for (const [host, { heardMs }] of this.#heard) if (heardMs < forget) this.#heard.delete(host);
  }

  /**
   * A quorum of the servers has what this host sent.
   *
   * @param sentAt by `Clock.monotonic`
   * @returns for how long the host was cut off before, when it was, milliseconds
   */
  proven(sentAt: number): number | undefined {
    const { isIsolated, silentMs } = this.standing();
    this.#provenAt = Math.max(this.#provenAt ?? sentAt, sentAt);
    return isIsolated ? silentMs : undefined;
  }

  /** A quorum of the servers has a beat of this host. */
  stored(sentAt: number, announced: Announced): void {
    if (this.#stored === undefined || sentAt >= this.#stored.sentAt) this.#stored = { sentAt, announced };
  }

  standing(): ClusterStanding {
    const now = this.#clock.monotonic();
    const silentMs = Math.max(0, now - (this.#provenAt ?? this.#began));
    const isIsolated = this.#isCutOff(now);
    // Requests may come before the timers of a process that was suspended.
    const hasJustWoken = now - this.#tickedAt > SILENT_MS || now - this.#wokeAt <= SILENT_MS;
    return { hosts: 1 + this.live().length, silentMs, isIsolated, isBehind: isIsolated && hasJustWoken };
  }

  /** Since this host sent the newest beat that a quorum of the servers has, milliseconds. */
  get unacknowledgedMs(): number {
    return this.#clock.monotonic() - (this.#stored?.sentAt ?? this.#began);
  }

  /** How long this run has lasted, milliseconds. */
  get upMs(): number {
    return this.#clock.monotonic() - this.#began;
  }

  /** The other hosts, also those that are silent now. */
  get heard(): ReadonlyMap<string, Host> {
    return this.#heard;
  }

  /** Lists a host no more, until it is heard again. */
  forget(host: string): void {
    this.#heard.delete(host);
  }

  /** The other hosts that were heard within 10 s; while this one is cut off, within the 10 s before. */
  live(): Host[] {
    const since = this.countsSince;
    return [...this.#heard.values()].filter(({ heardMs }) => heardMs >= since);
  }

  /** Hosts that were heard last before this time, by `Clock.monotonic`, do not count. */
  get countsSince(): number {
    const now = this.#clock.monotonic();
    return (this.#isCutOff(now) ? (this.#provenAt ?? this.#began) : now) - GONE_MS;
  }

  /** The other hosts that live; while this one is cut off, all that it knows of: they may live. By name. */
  get askable(): readonly string[] {
    return this.standing().isIsolated ? [...this.#heard.keys()] : this.live().map(({ host }) => host);
  }

  /**
   * What the hosts that live announced last under a name. Of this one it is what a quorum has stored, left out when nothing was stored for 2 s:
   * others may have heard newer figures.
   */
  announced(name: string): ReadonlyMap<string, Json> {
    const found = new Map<string, Json>();
    const own = this.#stored &&
      this.unacknowledgedMs <= SILENT_MS && { host: this.#host, announced: this.#stored.announced };
    for (const { host, announced } of [...this.live(), ...(own ? [own] : [])]) {
      const figures = Object.hasOwn(announced, name) ? announced[name] : undefined;
      if (figures !== undefined) found.set(host, figures);
    }
    return found;
  }

  #isCutOff(now: number): boolean {
    return this.#provenAt === undefined || now - this.#provenAt > SILENT_MS;
  }
}
