import { Simulation } from './simulation.ts';
import { ModelStream, type Network, oneSite } from './stream.ts';

/**
 * How an entry of the ledger is decided: `expectation`, as Holdfast does it, appends only behind the last entry that was
 * read; `order` appends at once, and whoever reads decides by the order of the entries whether a claim counts.
 */
export type Decision = 'expectation' | 'order';

export interface Setting {
  readonly hosts: number;
  readonly decision: Decision;
  readonly ttlMs: number;
  readonly seed: number;
  readonly network?: Network;
}

/** A beat, or a claim of what another host held: `stale` is that host's last entry, as far as the claimant has read. */
interface Entry {
  readonly stale?: number;
}

interface Member {
  isAlive: boolean;
  /** It appends something now. */
  isBusy: boolean;
  wantsClaim: boolean;
  folded: number;
  holder: number;
  /** Of the holder: its last entry, and when this host read it. */
  heard: { seq: number; at: number };
  deadline: number;
  lapses: number;
}

/** Hosts that renew their leases in one ledger, and compete for what one of them, host 0 at first, holds. */
export class ModelLedger {
  readonly simulation: Simulation;
  readonly stream: ModelStream<Entry>;
  /** From the beginning of a renewal to its acknowledgement, milliseconds. */
  readonly renewals: number[] = [];
  /** Who held it, from when until when at most. */
  readonly holders: { readonly host: number; readonly from: number; until: number }[] = [];
  readonly members: readonly Member[];
  readonly #setting: Setting;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.simulation = new Simulation(setting.seed);
    this.stream = new ModelStream(this.simulation, setting.hosts, setting.network ?? oneSite);
    const { ttlMs } = setting;
    this.members = Array.from({ length: setting.hosts }, () => ({
      isAlive: true,
      isBusy: false,
      wantsClaim: false,
      folded: 0,
      holder: 0,
      heard: { seq: 0, at: 0 },
      deadline: ttlMs,
      lapses: 0,
    }));
    this.holders.push({ host: 0, from: 0, until: ttlMs });
    this.stream.onSeen((host) => this.#fold(host));
    this.members.forEach((_, host) => {
      this.simulation.after(this.simulation.between(0, ttlMs / 5), () => this.#beat(host));
      this.simulation.after(ttlMs, () => this.#watch(host));
    });
  }

  kill(host: number): void {
    this.#member(host).isAlive = false;
  }

  /** Hosts that do not hold a valid lease now although they live. */
  lapsed(): number {
    return this.members.filter(({ isAlive, deadline }) => isAlive && deadline < this.simulation.now).length;
  }

  #member(host: number): Member {
    const member = this.members[host];
    if (!member) throw new Error(`there is no host ${host}`);
    return member;
  }

  #beat(host: number): void {
    this.#append(host);
    this.simulation.after(this.#setting.ttlMs / 5, () => this.#beat(host));
  }

  #append(host: number): void {
    const member = this.#member(host);
    if (!member.isAlive || member.isBusy) return;
    member.isBusy = true;
    this.#attempt(host, this.simulation.now);
  }

  #attempt(host: number, since: number): void {
    const { simulation, stream } = this;
    const member = this.#member(host);
    if (!member.isAlive) return;
    const sent = simulation.now;
    const claims = member.wantsClaim && sent - member.heard.at >= this.#setting.ttlMs;
    const expected = this.#setting.decision === 'expectation' ? stream.seenBy(host) : undefined;
    stream.append(host, claims ? { stale: member.heard.seq } : {}, expected, (outcome) => {
      if (!('seq' in outcome)) {
        stream.read(host, () => this.#attempt(host, since));
        return;
      }
      // Only who has read as far as its own entry knows whether it counts.
      const settle = () => this.#acknowledged(host, { since, sent, claims });
      if (stream.seenBy(host) >= outcome.seq) settle();
      else stream.read(host, settle);
    });
  }

  #acknowledged(
    host: number,
    { since, sent, claims }: { since: number; sent: number; claims: boolean },
  ): void {
    const { simulation } = this;
    const { ttlMs } = this.#setting;
    const member = this.#member(host);
    if (!member.isAlive) return;
    member.isBusy = false;
    this.renewals.push(simulation.now - since);
    const wasValid = simulation.now <= member.deadline;
    if (!wasValid) member.lapses += 1;
    member.deadline = Math.max(member.deadline, sent + ttlMs - (ttlMs / 10 + 200));
    if (member.holder === host) {
      const last = this.holders.at(-1);
      if (last?.host === host) last.until = Math.max(last.until, member.deadline);
      else if (claims) this.holders.push({ host, from: simulation.now, until: member.deadline });
    }
    if (claims) member.wantsClaim = false;
    else if (member.wantsClaim) this.#append(host);
  }

  /** Waits until the holder's last entry has stood still for the whole of its lease. */
  #watch(host: number): void {
    const member = this.#member(host);
    const { ttlMs } = this.#setting;
    const left = member.heard.at + ttlMs - this.simulation.now;
    if (left <= 0 && member.holder !== host) {
      member.wantsClaim = true;
      this.#append(host);
    }
    this.simulation.after(left > 0 ? left : ttlMs / 5, () => this.#watch(host));
  }

  #fold(host: number): void {
    const member = this.#member(host);
    for (let seq = member.folded + 1; seq <= this.stream.seenBy(host); seq += 1) {
      const entry = this.stream.message(seq);
      if (!entry) throw new Error(`there is no entry ${seq}`);
      const { author, body } = entry;
      if (body.stale !== undefined && body.stale === member.heard.seq) member.holder = author;
      if (author === member.holder) member.heard = { seq, at: this.simulation.now };
      member.folded = seq;
    }
    if (member.holder === host || this.simulation.now - member.heard.at < this.#setting.ttlMs)
      member.wantsClaim = false;
  }
}
