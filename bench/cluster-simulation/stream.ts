import type { Delay, Simulation } from './simulation.ts';

/**
 * What was measured of a stream of three replicas on nats-server 2.9.10, two shared processors: from the arrival of an
 * append to its commitment, and from there to a subscriber. A leader takes 21,000 appends a second with enough of
 * them in flight, so each occupies it for 48 µs.
 */
const COMMIT: Delay = { p50: 1.5, p99: 9 };
const PROPAGATION: Delay = { p50: 3.5, p99: 8 };
const APPEND_MS = 0.048;
/** How long a client waits for an answer before it takes an append for unknown, milliseconds. */
const TIMEOUT_MS = 1_000;

/** Where hosts and servers are. */
export interface Network {
  /** Milliseconds from a host to the leader of the stream. */
  toLeader(host: number): number;
  /** Milliseconds that the leader's nearest other server adds to a commitment. */
  readonly replicationMs: number;
  /** Whether a host reaches the leader now. */
  reaches(host: number, at: number): boolean;
}

/** All hosts and servers beside each other: 0.5 ms from one to another and back. */
export const oneSite: Network = { toLeader: () => 0.25, replicationMs: 0, reaches: () => true };

export type Outcome = { readonly seq: number } | { readonly conflict: true } | { readonly unknown: true };

/**
 * A stream as its clients see it: its leader orders what arrives, refuses an append whose expectation is wrong, and
 * answers when the others have it; a reader sees what is committed.
 */
export class ModelStream<Body> {
  /** Of all appends, those that were in vain, and what subscribers were sent. */
  readonly counts = { appends: 0, conflicts: 0, unknown: 0, deliveries: 0, reads: 0 };
  readonly #simulation: Simulation;
  readonly #network: Network;
  readonly #hosts: number;
  #committed = 0;
  #commitmentAt = 0;
  #busyUntil = 0;
  #leaderUntil = 0;
  readonly #seen: number[];
  readonly #inOrderAt: number[];
  readonly #listeners: ((host: number) => void)[] = [];
  /** What stands in the stream: sequence 1 is the first. */
  readonly #messages: { readonly author: number; readonly body: Body; readonly at: number }[] = [];

  constructor(simulation: Simulation, hosts: number, network: Network = oneSite) {
    this.#simulation = simulation;
    this.#hosts = hosts;
    this.#network = network;
    this.#seen = Array.from({ length: hosts }, () => 0);
    this.#inOrderAt = Array.from({ length: hosts }, () => 0);
  }

  /** The last message that a host has seen. */
  seenBy(host: number): number {
    return this.#seen[host] ?? 0;
  }

  /** `at` is the time at which the leader ordered it. */
  message(seq: number): { readonly author: number; readonly body: Body; readonly at: number } | undefined {
    return this.#messages[seq - 1];
  }

  /** Hears when a host has seen more. */
  onSeen(listener: (host: number) => void): void {
    this.#listeners.push(listener);
  }

  /** There is no leader for so long. */
  elect(ms: number): void {
    this.#leaderUntil = this.#simulation.now + ms;
  }

  append(host: number, body: Body, expected: number | undefined, done: (outcome: Outcome) => void): void {
    const simulation = this.#simulation;
    this.counts.appends += 1;
    const oneWay = this.#network.toLeader(host);
    simulation.after(oneWay, () => {
      if (this.#isLost(host)) {
        this.counts.unknown += 1;
        simulation.after(TIMEOUT_MS - oneWay, () => done({ unknown: true }));
        return;
      }
      const start = Math.max(simulation.now, this.#busyUntil);
      this.#busyUntil = start + APPEND_MS;
      if (expected !== undefined && expected !== this.#messages.length) {
        this.counts.conflicts += 1;
        simulation.after(this.#busyUntil - simulation.now + oneWay, () => done({ conflict: true }));
        return;
      }
      const seq = this.#messages.push({ author: host, body, at: start });
      // Commitments keep the order of the stream.
      this.#commitmentAt = Math.max(
        this.#commitmentAt,
        this.#busyUntil + this.#network.replicationMs + simulation.delay(COMMIT),
      );
      simulation.after(this.#commitmentAt - simulation.now, () => {
        this.#committed = seq;
        simulation.after(oneWay, () => done({ seq }));
        this.#deliver(seq);
      });
    });
  }

  /** Reads everything that is committed. */
  read(host: number, done: (isKnown: boolean) => void): void {
    const simulation = this.#simulation;
    this.counts.reads += 1;
    const oneWay = this.#network.toLeader(host);
    simulation.after(oneWay, () => {
      if (this.#isLost(host)) {
        simulation.after(TIMEOUT_MS - oneWay, () => done(false));
        return;
      }
      const upTo = this.#committed;
      simulation.after(oneWay + APPEND_MS, () => {
        this.#advance(host, upTo);
        done(true);
      });
    });
  }

  #isLost(host: number): boolean {
    const { now } = this.#simulation;
    return now < this.#leaderUntil || !this.#network.reaches(host, now);
  }

  #deliver(seq: number): void {
    const simulation = this.#simulation;
    for (let host = 0; host < this.#hosts; host += 1) {
      if (!this.#network.reaches(host, simulation.now)) continue;
      this.counts.deliveries += 1;
      const due = simulation.now + this.#network.toLeader(host) + simulation.delay(PROPAGATION) - COMMIT.p50;
      const at = Math.max(this.#inOrderAt[host] ?? 0, due);
      this.#inOrderAt[host] = at;
      simulation.after(Math.max(0, at - simulation.now), () => this.#advance(host, seq));
    }
  }

  #advance(host: number, upTo: number): void {
    if (upTo <= this.seenBy(host)) return;
    this.#seen[host] = upTo;
    for (const listener of this.#listeners) listener(host);
  }
}
