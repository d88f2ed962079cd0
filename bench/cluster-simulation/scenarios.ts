import { quantile } from '../measure.ts';
import { type Decision, ModelLedger, type Setting } from './ledger.ts';
import type { Network } from './stream.ts';

/** The default lease, milliseconds. */
export const TTL_MS = 15_000;
const STEP_MS = 250;
/** What an election of a stream's leader was measured to take, milliseconds. */
const ELECTION_MS = { from: 4_000, to: 12_000 };

/** Three sites with a server and a third of the hosts each; `wanMs` there and back between any two. */
export function threeSites(wanMs: number, isCut: (host: number) => boolean = () => false): Network {
  return {
    // The leader is in the site of host 1, so that host 0, which holds what the others want, is elsewhere.
    toLeader: (host) => (host % 3 === 1 ? 0.25 : wanMs / 2),
    replicationMs: wanMs,
    reaches: (host) => !isCut(host),
  };
}

export interface SteadyFigures {
  readonly appendsPerSecond: number;
  /** Appends for one entry. */
  readonly attempts: number;
  readonly p50: number;
  readonly p99: number;
  /** Of the time of all hosts, how much of it they had no valid lease. */
  readonly without: number;
}

/** Nothing fails: every host renews for a while. */
export function steady(setting: Setting, forMs: number): SteadyFigures {
  const ledger = new ModelLedger(setting);
  let without = 0;
  for (let at = 0; at < forMs; at += STEP_MS) {
    ledger.simulation.run(at);
    without += ledger.lapsed();
  }
  const { appends, conflicts } = ledger.stream.counts;
  return {
    appendsPerSecond: appends / (forMs / 1_000),
    attempts: appends / Math.max(1, appends - conflicts),
    p50: quantile(ledger.renewals, 0.5),
    p99: quantile(ledger.renewals, 0.99),
    without: without / (setting.hosts * (forMs / STEP_MS)),
  };
}

export interface TakeoverFigures {
  readonly median: number;
  readonly worst: number;
  /** Runs in which it had moved already although nothing had failed. */
  readonly unprovoked: number;
  /** Milliseconds between the end of the old holder's last lease and the beginning of the next: at least. */
  readonly gap: number;
}

/** The holder dies, or its site is cut off. */
export function takeover(setting: Setting, runs: number, wanMs?: number): TakeoverFigures {
  const took: number[] = [];
  let gap = Number.POSITIVE_INFINITY;
  let unprovoked = 0;
  for (let run = 0; run < runs; run += 1) {
    let isCut = false;
    const network =
      wanMs === undefined ? {} : { network: threeSites(wanMs, (host) => isCut && host % 3 === 0) };
    const ledger = new ModelLedger({ ...setting, ...network, seed: setting.seed + run });
    const { simulation, holders } = ledger;
    simulation.run(simulation.between(1, 1.2) * setting.ttlMs);
    const at = simulation.now;
    if (holders[1]) unprovoked += 1;
    if (wanMs === undefined) ledger.kill(0);
    else isCut = true;
    for (let step = 0; step < 3 * setting.ttlMs && !holders[1]; step += STEP_MS) simulation.run(at + step);
    const [before, next] = holders;
    if (!before || !next) continue;
    if (next.from > at) took.push(next.from - at);
    gap = Math.min(gap, next.from - before.until);
  }
  return { median: quantile(took, 0.5), worst: Math.max(...took), unprovoked, gap };
}

export interface ElectionFigures {
  /** Of the leases, how many ran out because nobody could renew them. */
  readonly lost: number;
  /** From the end of the election until every host had renewed, milliseconds: at most. */
  readonly settled: number;
}

/** The leader of the ledger's stream is lost, and another is elected. */
export function election(hosts: number, decision: Decision, runs: number, seed: number): ElectionFigures {
  let lost = 0;
  let settled = 0;
  for (let run = 0; run < runs; run += 1) {
    const ledger = new ModelLedger({ hosts, decision, ttlMs: TTL_MS, seed: seed + run });
    const { simulation, stream } = ledger;
    simulation.run(simulation.between(1, 1.2) * TTL_MS);
    const ms = simulation.between(ELECTION_MS.from, ELECTION_MS.to);
    const end = simulation.now + ms;
    stream.elect(ms);
    const lapsed = new Set<number>();
    let isSettled = false;
    while (!isSettled && simulation.now < end + 2 * TTL_MS) {
      simulation.run(simulation.now + 50);
      ledger.members.forEach(({ deadline }, host) => {
        if (deadline < simulation.now) lapsed.add(host);
      });
      // Whoever has renewed since has a lease that ends later than any of before the election.
      isSettled =
        simulation.now > end &&
        ledger.members.every(({ deadline }) => deadline > end - 1_000 + TTL_MS * 0.9 - 200);
    }
    lost += lapsed.size / hosts;
    settled = Math.max(settled, simulation.now - end);
  }
  return { lost: lost / runs, settled };
}
