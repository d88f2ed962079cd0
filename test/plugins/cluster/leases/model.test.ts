import test from 'ava';
import fc from 'fast-check';
import { type Change, Competitor } from '../../../../src/plugins/cluster/leases/competitor.ts';
import { Ledger, type LedgerEntry, newIncarnation } from '../../../../src/plugins/cluster/leases/ledger.ts';
import { runs } from '../../../support/runs.ts';

// Hosts whose clocks run at different rates compete over a stream that compares and sets, while messages are late, lost and
// sent twice, answers are lost, strangers write between them, readers see the past, and hosts are paused, killed, started again, drained and asked to
// release. All in the true time of the model, which no host knows.

const TTL = 10_000;
const FAULTS_END = 30 * TTL;
/** Enough for whoever has to wait for the time of a lease, and then for one more host. */
const QUIET = 4 * TTL;
const TIMEOUT = 1_000;
const POLL = 500;
const SINGLETONS = ['a', 'b'];
/** What the stream keeps. */
const KEPT = 150;

interface Plan {
  readonly seed: number;
  readonly hosts: number;
  /** Milliseconds that a message takes at most, in the worst case. */
  readonly slowest: number;
  /** Of a hundred messages, so many are lost; the same for answers. */
  readonly lost: number;
  /** Of a hundred steps of a host, so many end in a pause, and so on. */
  readonly pauses: number;
  readonly kills: number;
  readonly wishes: number;
  readonly replaced: boolean;
  /** Of a hundred messages that arrive, so many find that strangers have written some before. */
  readonly strangers: number;
}

const plans: fc.Arbitrary<Plan> = fc.record({
  seed: fc.integer(),
  hosts: fc.integer({ min: 2, max: 4 }),
  slowest: fc.constantFrom(2, 50, 800, 3 * TTL),
  lost: fc.constantFrom(0, 5, 40),
  pauses: fc.constantFrom(0, 1, 5),
  kills: fc.constantFrom(0, 1),
  wishes: fc.constantFrom(0, 1, 3),
  replaced: fc.boolean(),
  strangers: fc.constantFrom(0, 10, 90),
});

interface Host {
  readonly name: string;
  readonly rate: number;
  readonly offset: number;
  folder: string;
  run: number;
  competitor: Competitor;
  isReadDue: boolean;
  readAt: number;
  pausedUntil: number;
  /** The step that is awaited; answers to earlier ones come too late. */
  turn: number;
}

class World {
  readonly #plan: Plan;
  readonly #queue: { at: number; order: number; run: () => void }[] = [];
  #order = 0;
  #now = 0;
  #draw: number;
  readonly #hosts: Host[] = [];
  #incarnation = newIncarnation(1_000_000_000, 'first');
  #first = 1;
  #entries: LedgerEntry[] = [];
  readonly #numbers = new Map<string, number>();
  gains = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#draw = plan.seed >>> 0;
    for (let i = 0; i < plan.hosts; i += 1) {
      const name = `h${i}`;
      // The first two are as far apart as clocks may be.
      const rate = i === 0 ? 0.99 : i === 1 ? 1.01 : 0.99 + this.#random() * 0.02;
      const offset = this.#random() * 1e9;
      const competitor = this.#competitorOf(name, `${name}-folder`, 0);
      const state = { isReadDue: true, readAt: 0, pausedUntil: 0, turn: 0, run: 0 };
      this.#hosts.push({ name, rate, offset, folder: `${name}-folder`, competitor, ...state });
    }
  }

  play(): void {
    for (const host of this.#hosts) this.#later(this.#random() * 2_000, () => this.#step(host));
    if (this.#plan.replaced) this.#later(this.#random() * FAULTS_END, () => this.#replace());
    for (;;) {
      const next = this.#next();
      if (!next || next.at > FAULTS_END + QUIET) break;
      this.#now = next.at;
      next.run();
      this.#check();
    }
    this.#now = FAULTS_END + QUIET;
    if (this.#hosts.some(({ competitor }) => !competitor.isDrained)) {
      for (const singleton of SINGLETONS) {
        const holders = this.#hosts.filter((host) => this.#believes(host, singleton));
        if (holders.length !== 1) throw new Error(`${holders.length} hosts hold ${singleton} in the end`);
      }
    }
  }

  #next() {
    let best = 0;
    for (let i = 1; i < this.#queue.length; i += 1) {
      const [a, b] = [this.#queue[i]!, this.#queue[best]!];
      if (a.at < b.at || (a.at === b.at && a.order < b.order)) best = i;
    }
    return this.#queue.splice(best, 1)[0];
  }

  #later(ms: number, run: () => void): void {
    this.#order += 1;
    this.#queue.push({ at: this.#now + ms, order: this.#order, run });
  }

  #random(): number {
    this.#draw = (this.#draw + 0x6d2b79f5) >>> 0;
    let t = this.#draw;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  get #hasFaults(): boolean {
    return this.#now < FAULTS_END;
  }

  #chance(percent: number): boolean {
    return this.#random() * 100 < percent && this.#hasFaults;
  }

  /** Mostly quick, at times as slow as the plan allows. */
  #delay(): number {
    return this.#chance(10) ? this.#random() * this.#plan.slowest : this.#random() * 3;
  }

  #competitorOf(host: string, folder: string, run: number): Competitor {
    const competitor = new Competitor({ host, run: `${host}/${run}`, folder, version: '1', ttlMs: TTL });
    for (const singleton of SINGLETONS) competitor.offer(singleton);
    return competitor;
  }

  #clock({ rate, offset }: Host): number {
    return this.#now * rate + offset;
  }

  #believes(host: Host, singleton: string): boolean {
    return (host.competitor.deadline(singleton) ?? -1) > this.#clock(host);
  }

  #check(): void {
    for (const singleton of SINGLETONS) {
      const holders = this.#hosts.filter((host) => this.#believes(host, singleton));
      if (holders.length > 1)
        throw new Error(`at ${this.#now} ${holders.map(({ name }) => name).join(' and ')} hold ${singleton}`);
    }
  }

  /** What a host does runs when it is not paused, and not in a process that was killed meanwhile. */
  #on(host: Host, ms: number, run: () => void): void {
    const { run: process } = host;
    this.#later(ms, () => {
      if (host.run !== process) return;
      if (host.pausedUntil > this.#now) this.#on(host, host.pausedUntil - this.#now, run);
      else run();
    });
  }

  #step(host: Host): void {
    const { competitor } = host;
    if (this.#chance(this.#plan.kills)) {
      this.#restart(host);
      return;
    }
    if (this.#chance(this.#plan.pauses)) {
      host.pausedUntil = this.#now + this.#random() * 3 * TTL;
      this.#on(host, 0, () => this.#step(host));
      return;
    }
    if (this.#chance(this.#plan.wishes)) this.#wish(host);
    if (!this.#hasFaults) competitor.drain(false);
    const now = this.#clock(host);
    competitor.expire(now);
    host.turn += 1;
    const { turn } = host;
    if (host.isReadDue || now >= host.readAt + POLL) {
      this.#read(host, turn);
    } else {
      const draft = competitor.draft(now);
      if (!draft) {
        const wait = Math.max(1, Math.min(competitor.nextAt(now), host.readAt + POLL) - now);
        this.#on(host, wait / host.rate, () => this.#step(host));
        return;
      }
      const incarnation = competitor.ledger?.incarnation;
      const body = competitor.sending(draft, now);
      const isTwice = this.#chance(5);
      for (const isAgain of isTwice ? [false, true] : [false]) {
        if (this.#chance(this.#plan.lost)) continue;
        // A host guesses how many messages of strangers come before its own.
        const guess = this.#chance(this.#plan.strangers) ? Math.floor(this.#random() * 4) : 0;
        this.#later(this.#delay() + (isAgain ? this.#delay() : 0), () => {
          for (let more = 0; more < 3; more += 1)
            if (this.#chance(this.#plan.strangers / 2)) this.#store(undefined);
          const isNext = incarnation === this.#incarnation && draft.after + guess === this.#last;
          if (isNext) this.#store(body);
          const seq = this.#last;
          if (!this.#chance(this.#plan.lost)) {
            this.#on(host, this.#delay(), () => {
              if (host.turn !== turn) return;
              if (isNext && guess === 0)
                this.#take(host, competitor.read([{ seq, body }], this.#clock(host)));
              else host.isReadDue = true;
              this.#step(host);
            });
          }
        });
      }
    }
    this.#on(host, TIMEOUT / host.rate, () => {
      if (host.turn !== turn) return;
      host.isReadDue = true;
      this.#step(host);
    });
  }

  #read(host: Host, turn: number): void {
    const { competitor } = host;
    if (this.#chance(this.#plan.lost)) return;
    this.#later(this.#delay(), () => {
      const incarnation = this.#incarnation;
      // A server that is cut off from the others answers with what it has.
      const seen = this.#chance(5) ? Math.floor(this.#random() * this.#entries.length) : this.#entries.length;
      const entries = this.#entries.slice(0, seen);
      const first = this.#first;
      if (this.#chance(this.#plan.lost)) return;
      this.#on(host, this.#delay(), () => {
        if (host.turn !== turn) return;
        const now = this.#clock(host);
        const { ledger } = competitor;
        host.isReadDue = false;
        host.readAt = now;
        if (ledger?.incarnation !== incarnation || (ledger.last > 0 && first > ledger.last + 1))
          competitor.open(new Ledger(incarnation, ledger), now, 'another ledger');
        this.#take(host, competitor.read(entries, now));
        this.#step(host);
      });
    });
  }

  #take(host: Host, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === 'lost') continue;
      this.gains += 1;
      const before = this.#numbers.get(change.singleton) ?? 0;
      if (change.number <= before) throw new Error(`${host.name} holds by ${change.number} after ${before}`);
      this.#numbers.set(change.singleton, change.number);
    }
  }

  get #last(): number {
    return this.#first + this.#entries.length - 1;
  }

  #store(body: Uint8Array | undefined): void {
    this.#entries = [...this.#entries, { seq: this.#last + 1, body }];
    if (this.#entries.length <= KEPT) return;
    this.#entries = this.#entries.slice(1);
    this.#first += 1;
  }

  #replace(): void {
    this.#incarnation = newIncarnation(1_000_000_000 + Math.ceil(this.#now), 'second');
    this.#entries = [];
    this.#first = 1;
  }

  #restart(host: Host): void {
    host.run += 1;
    // Sometimes the folder is a copy, or the machine has booted.
    if (this.#random() < 0.3) host.folder = `${host.name}-folder-${host.run}`;
    host.competitor = this.#competitorOf(host.name, host.folder, host.run);
    host.isReadDue = true;
    host.turn += 1;
    this.#on(host, this.#random() * TTL, () => this.#step(host));
  }

  #wish(host: Host): void {
    const { competitor } = host;
    const now = this.#clock(host);
    const pick = this.#random();
    if (pick < 0.5) {
      const to = this.#hosts[Math.floor(this.#random() * this.#hosts.length)]?.name;
      for (const { singleton } of competitor.held) competitor.release(singleton, to, now + TTL);
    } else {
      competitor.drain(pick < 0.75);
      if (pick < 0.75)
        for (const { singleton } of competitor.held) competitor.release(singleton, undefined, 0);
    }
  }
}

test('[C13] whatever is late, lost, doubled, paused or killed: one host at a time holds a singleton, its numbers grow, and somebody holds it in the end', (t) => {
  let gains = 0;
  fc.assert(
    fc.property(plans, (plan) => {
      const world = new World(plan);
      world.play();
      gains += world.gains;
    }),
    { numRuns: runs(200), seed: 13 },
  );
  t.log(`${gains} leases`);
  t.true(gains > 200);
});
