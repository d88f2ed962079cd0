import type { Applied, Holder, Ledger, LedgerEntry } from './ledger.ts';
import {
  encodeMessage,
  type LastHolder,
  LEDGER_PROTOCOL,
  type LedgerMessage,
  type MirrorPosition,
  MOST_BETWEEN,
} from './message.ts';

// A holder acts until the time at which it SENT its newest acknowledged claim + ttl - margin. A rival takes over when that
// claim, or none newer, was the newest for ttl since the rival READ it, which is after it was sent; each measures by its own
// clock, so that neither the delay of a message nor what the wall clocks say matters. If one clock gains and the other loses
// at most the share r, the holder ends in true time after (ttl - margin) / (1 - r), the rival begins no sooner than
// ttl / (1 + r): sound while margin >= ttl * 2r / (1 + r). A tenth of ttl allows for clocks that are 5 % wrong; quartz is
// 0.02 % wrong. The 200 ms are for what stands between the last look at the deadline and the act: a full event loop.
// That a claim was the newest until the rival's own is appended is what the stream proves: it takes a message only in the
// place for which it was meant, and there it counts only if nothing of the cluster stands between that and what the sender
// read last.
const MARGIN_SHARE = 0.1;
const MARGIN_MS = 200;

/** Claims are repeated so often within the time of a lease. */
const BEATS = 5;
/** A host to which a singleton is released has so many beats to claim it before others. */
const HEAD_START_BEATS = 2;

export interface Self {
  readonly host: string;
  readonly run: string;
  readonly folder: string;
  readonly version: string;
  readonly ttlMs: number;
  /** Differs in tests alone. */
  readonly protocol?: number;
}

/** What changed for this host. */
export type Change =
  | {
      readonly type: 'gained';
      readonly singleton: string;
      readonly number: number;
      readonly last?: LastHolder;
    }
  | { readonly type: 'lost'; readonly singleton: string; readonly reason: string };

/** A message to append behind entry `after`, the last one that was read. */
export interface Draft {
  readonly after: number;
  readonly message: LedgerMessage;
}

interface Tenure {
  readonly number: number;
  /** When the newest claim that stands in the ledger was sent. */
  sentAt: number;
}

/** The host that has another protocol, and its version of Holdfast, where its messages can be read. */
export interface Refusal {
  readonly host?: string;
  readonly version?: string | undefined;
}

/** What this host wants of one singleton. */
interface Wish {
  /** It claims nothing before, unless the singleton is released to it. */
  notBefore: number;
  /** The work of the last tenure has not ended yet. */
  isBusy: boolean;
}

/**
 * Decides for one host what to append to the ledger next, and for how long it holds what it holds. It knows no clock and no
 * stream: each call says what time it is, in milliseconds by a clock of this process that only time moves.
 */
export class Competitor {
  readonly beatMs: number;
  readonly #self: Self;
  readonly #protocol: number;
  readonly #wishes = new Map<string, Wish>();
  readonly #tenures = new Map<string, Tenure>();
  readonly #releases = new Map<string, { readonly number: number; readonly to?: string | undefined }>();
  /** What was sent and may stand in the ledger, by beat. */
  readonly #sent = new Map<number, { readonly at: number; readonly after: number }>();
  /** When the newest claim or release of a singleton was read first. */
  readonly #seenAt = new Map<string, number>();
  #ledger: Ledger | undefined;
  /** When this host first read this incarnation. */
  #openedAt = 0;
  /** The longest lease that any host had by what this one read before. */
  #longestTtlBeforeMs = 0;
  #beat = 0;
  /** When the newest message of this run that stands in the ledger was sent. */
  #beatAt = Number.NEGATIVE_INFINITY;
  #isDrained = false;
  #isHindered = false;
  /** What the newest message of this run in this ledger said of that. */
  #saidDrained: boolean | undefined;
  /** When a message was last read that this version cannot read: it may hold a claim of any host. */
  #unreadableAt = Number.NEGATIVE_INFINITY;
  /** How far the log of this host is mirrored; every message says so. */
  mirror: MirrorPosition | undefined;

  constructor(self: Self) {
    this.#self = self;
    this.#protocol = self.protocol ?? LEDGER_PROTOCOL;
    this.beatMs = self.ttlMs / BEATS;
  }

  get ledger(): Ledger | undefined {
    return this.#ledger;
  }

  get isDrained(): boolean {
    return this.#isDrained;
  }

  /** How long a claim allows to act, from when it was sent. */
  get #holdMs(): number {
    return this.#self.ttlMs * (1 - MARGIN_SHARE) - MARGIN_MS;
  }

  /** Wants to hold a singleton from now on. */
  offer(singleton: string): void {
    if (!this.#wishes.has(singleton)) this.#wishes.set(singleton, { notBefore: 0, isBusy: false });
  }

  /** A drained host claims nothing; what it has is released by whoever ends the work. */
  drain(isDrained: boolean): void {
    this.#isDrained = isDrained;
  }

  /** Keeps this host from claiming while it can carry out nothing; what it has is released by whoever ends the work. */
  hinder(isHindered: boolean): void {
    this.#isHindered = isHindered;
  }

  /** Keeps this host from claiming while the work of its last tenure is still ending. */
  busy(singleton: string, isBusy: boolean): void {
    const wish = this.#wishes.get(singleton);
    if (wish) wish.isBusy = isBusy;
  }

  /** Releases a singleton with the next message, if the ledger has it as held here, and does not claim it before a time. */
  release(singleton: string, to: string | undefined, notBefore: number): void {
    const holder = this.#ledger?.holdings.get(singleton)?.holder;
    const wish = this.#wishes.get(singleton);
    if (wish) wish.notBefore = notBefore;
    this.#tenures.delete(singleton);
    if (holder?.run === this.#self.run) this.#releases.set(singleton, { number: holder.number, to });
  }

  /** Lets a tenure run out: the work goes on that should have ended. */
  abandon(singleton: string): void {
    this.#tenures.delete(singleton);
  }

  /** Whether a release has yet to reach the ledger. */
  isReleasing(singleton: string): boolean {
    return this.#releases.has(singleton);
  }

  /** Until when this host holds a singleton; undefined when it does not. */
  deadline(singleton: string): number | undefined {
    const tenure = this.#tenures.get(singleton);
    return tenure && tenure.sentAt + this.#holdMs;
  }

  /** The singletons that this host competes for. */
  get offered(): readonly string[] {
    return [...this.#wishes.keys()];
  }

  /** The singletons that this host holds, with their numbers. */
  get held(): readonly { readonly singleton: string; readonly number: number }[] {
    return [...this.#tenures].map(([singleton, { number }]) => ({ singleton, number }));
  }

  /** Begins with another ledger: the first one, one that replaces it, or the same one, read from its beginning once more. */
  open(ledger: Ledger, now: number, reason: string): Change[] {
    const lost = [...this.#tenures.keys()].map((singleton) => this.#lose(singleton, reason));
    this.#longestTtlBeforeMs = this.#longestTtlMs;
    this.#ledger = ledger;
    this.#openedAt = now;
    this.#seenAt.clear();
    this.#sent.clear();
    this.#releases.clear();
    this.#beatAt = Number.NEGATIVE_INFINITY;
    this.#saidDrained = undefined;
    return lost;
  }

  /**
   * Takes in what was read.
   *
   * @param now when the answer had arrived
   * @param onApplied hears of each entry
   */
  read(entries: Iterable<LedgerEntry>, now: number, onApplied?: (applied: Applied) => void): Change[] {
    const ledger = this.#ledger;
    if (!ledger) return [];
    const changes: Change[] = [];
    for (const entry of entries) {
      if (entry.seq <= ledger.last) continue;
      const applied = ledger.apply(entry);
      onApplied?.(applied);
      if (applied === 'unreadable') this.#unreadableAt = now;
      if (typeof applied !== 'string') {
        for (const { singleton } of [...applied.claims, ...applied.releases])
          this.#seenAt.set(singleton, now);
        if (applied.run === this.#self.run) this.#own(applied, entry.seq, now, changes);
      }
      for (const [beat, { after }] of this.#sent)
        if (after + MOST_BETWEEN < ledger.last) this.#sent.delete(beat);
    }
    for (const [singleton, { number }] of [...this.#releases, ...this.#tenures]) {
      const holder = ledger.holdings.get(singleton)?.holder;
      if (holder?.run === this.#self.run && holder.number === number) continue;
      if (this.#releases.delete(singleton)) continue;
      changes.push(this.#lose(singleton, holder ? `${holder.host} holds it` : 'the ledger does not have it'));
    }
    return changes;
  }

  /** A message of this run stands in the ledger: also one of which no answer had come. */
  #own({ beat, claims, drained }: LedgerMessage, seq: number, now: number, changes: Change[]): void {
    const sent = this.#sent.get(beat);
    this.#saidDrained = drained;
    if (!sent) return; // too late to say when
    this.#beatAt = Math.max(this.#beatAt, sent.at);
    for (const { singleton } of claims) {
      const { holder, last } = this.#ledger?.holdings.get(singleton) ?? {};
      if (holder?.run !== this.#self.run || holder.beatSeq !== seq) continue;
      const tenure = this.#tenures.get(singleton);
      if (tenure?.number === holder.number) {
        tenure.sentAt = Math.max(tenure.sentAt, sent.at);
      } else if (holder.since === seq && sent.at + this.#holdMs > now && this.#wants(singleton)) {
        this.#tenures.set(singleton, { number: holder.number, sentAt: sent.at });
        changes.push({ type: 'gained', singleton, number: holder.number, ...(last && { last }) });
      }
    }
  }

  /** Ends what has run out. Call it before anything that relies upon a lease, and when `nextAt` says so. */
  expire(now: number): Change[] {
    return [...this.#tenures]
      .filter(([, { sentAt }]) => sentAt + this.#holdMs <= now)
      .map(([singleton]) => this.#lose(singleton, 'the lease ran out'));
  }

  #lose(singleton: string, reason: string): Change {
    this.#tenures.delete(singleton);
    return { type: 'lost', singleton, reason };
  }

  #wants(singleton: string): boolean {
    const wish = this.#wishes.get(singleton);
    const isFree = !this.#isDrained && !this.#isHindered && !this.#releases.has(singleton);
    return wish !== undefined && !wish.isBusy && isFree;
  }

  /**
   * From when on this host may claim a singleton that it does not hold.
   *
   * @returns infinity when it may not at all
   */
  #claimableAt(singleton: string): number {
    const ledger = this.#ledger;
    if (!ledger || !this.#wants(singleton)) return Number.POSITIVE_INFINITY;
    const { holder, released } = ledger.holdings.get(singleton) ?? {};
    const { notBefore } = this.#wishes.get(singleton) ?? { notBefore: 0 };
    const seenAt = this.#seenAt.get(singleton) ?? this.#openedAt;
    if (holder) return Math.max(notBefore, this.#isDead(holder) ? 0 : seenAt + holder.ttlMs);
    // Nobody says whether somebody holds it by a claim that is gone, or by an earlier incarnation.
    if (!released) return Math.max(notBefore, this.#openedAt + this.#longestTtlMs);
    if (released.to === undefined) return notBefore;
    if (released.to === this.#self.host) return 0;
    return Math.max(notBefore, seenAt + HEAD_START_BEATS * this.beatMs);
  }

  /** It is this process, or one that has ended: their data folder has one process at a time. */
  #isDead({ host, folder }: Holder): boolean {
    return host === this.#self.host && folder === this.#self.folder;
  }

  get #longestTtlMs(): number {
    const others = [...(this.#ledger?.hosts.values() ?? [])].map(({ ttlMs }) => ttlMs);
    return Math.max(this.#self.ttlMs, this.#longestTtlBeforeMs, ...others);
  }

  /** Another version of the protocol is in use: until that has ended, this host claims nothing. */
  refusedBy(now: number): Refusal | undefined {
    if (now < this.#unreadableAt + this.#longestTtlMs) return {};
    for (const [singleton, { holder }] of this.#ledger?.holdings ?? []) {
      if (!holder || holder.protocol === this.#protocol) continue;
      const seenAt = this.#seenAt.get(singleton) ?? this.#openedAt;
      if (now >= seenAt + holder.ttlMs) continue;
      const { host } = holder;
      return { host, version: this.#ledger?.hosts.get(host)?.version };
    }
    return undefined;
  }

  #claims(now: number): string[] {
    if (this.refusedBy(now)) return [];
    return [...this.#wishes.keys()].filter(
      (singleton) => !this.#tenures.has(singleton) && this.#claimableAt(singleton) <= now,
    );
  }

  /** What is to be released: also what this run got by a message that it had given up. */
  get #released(): LedgerMessage['releases'] {
    const released = [...this.#releases].map(([singleton, { number, to }]) => ({
      singleton,
      number,
      ...(to !== undefined && { to }),
    }));
    for (const [singleton, { holder }] of this.#ledger?.holdings ?? []) {
      if (holder?.run !== this.#self.run || this.#tenures.has(singleton)) continue;
      if (this.#releases.has(singleton) || this.#wishes.get(singleton)?.isBusy) continue;
      if (!this.#wants(singleton)) released.push({ singleton, number: holder.number });
    }
    return released;
  }

  /** Whoever holds something says by its next message what this host's has to follow; after a lease nobody does. */
  #isUnsure(now: number): boolean {
    return this.#ledger?.isKnown === false && now < this.#openedAt + this.#longestTtlMs;
  }

  /** What to append now; undefined while there is nothing to say. What ran out is not claimed any more: call `expire` first. */
  draft(now: number): Draft | undefined {
    const ledger = this.#ledger;
    if (!ledger || this.#isUnsure(now)) return undefined;
    const begun = this.#claims(now);
    const isBeat = this.#tenures.size > 0 && now >= this.#beatAt + this.beatMs;
    const earlier = ledger.earlierDue;
    const releases = this.#released;
    const isDue = begun.length > 0 || releases.length > 0 || isBeat || this.#saidDrained !== this.#isDrained;
    if (!isDue && !earlier) return undefined;
    const { host, run, folder, version, ttlMs } = this.#self;
    this.#beat += 1;
    const message: LedgerMessage = {
      ...{ protocol: this.#protocol, host, run, beat: this.#beat, folder, version, ttlMs },
      drained: this.#isDrained,
      prev: ledger.chain,
      read: ledger.last,
      above: ledger.above,
      claims: [...this.held, ...begun.map((singleton) => ({ singleton }))],
      releases,
      ...(this.mirror && { mirror: this.mirror }),
      ...(earlier && { earlier }),
    };
    return { after: ledger.last, message };
  }

  /** A draft goes out. @param now before it is sent: the lease counts from here */
  sending({ after, message }: Draft, now: number): Buffer {
    this.#sent.set(message.beat, { at: now, after });
    return encodeMessage(message);
  }

  /** When something is due at the latest, if nothing is read until then. */
  nextAt(now: number): number {
    const times = [Number.POSITIVE_INFINITY];
    for (const { sentAt } of this.#tenures.values()) times.push(sentAt + this.#holdMs);
    if (this.#tenures.size > 0) times.push(this.#beatAt + this.beatMs);
    if (!this.refusedBy(now)) {
      for (const singleton of this.#wishes.keys())
        if (!this.#tenures.has(singleton)) times.push(this.#claimableAt(singleton));
    }
    if (this.#isUnsure(now)) return this.#openedAt + this.#longestTtlMs;
    if (this.#released.length > 0 || this.#saidDrained !== this.#isDrained) times.push(now);
    return Math.min(...times);
  }
}
