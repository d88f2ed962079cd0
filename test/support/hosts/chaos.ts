import { Simulation } from '../../../bench/cluster-simulation/simulation.ts';
import { alone, type Fault, type FaultKind, injectFaults, ofServers } from './faults.ts';
import { FaultyCluster, type FaultyClusterWish } from './faulty-cluster.ts';

/** Rounds of faults, one behind the other; those of a round may overlap. */
export type Schedule = readonly (readonly Fault[])[];

export interface ChaosWish {
  readonly seed: number;
  /** About how long it takes. */
  readonly seconds: number;
  readonly leaseMs: number;
  readonly kinds: readonly FaultKind[];
}

const WHOM: readonly Fault['whom'][] = ['holder', 'holder', 'first', 'second'];
/** What a round takes beside its faults, about: until the pump goes on. Milliseconds. */
const REST_MS = 2_000;

/** A fault that takes so much longer than it should is told. */
const LONG_MS = 15_000;

/** The faults of a seed: the same on every machine. */
export function chaosSchedule({ seed, seconds, leaseMs, kinds }: ChaosWish): Schedule {
  const chance = new Simulation(seed);
  const pick = <T>(from: readonly T[]): T => {
    const picked = from[Math.floor(chance.between(0, from.length))];
    if (picked === undefined) throw new Error('there is nothing to pick from');
    return picked;
  };
  const all = kinds.filter((kind) => kind !== 'revoke');
  const together = all.filter((kind) => !alone.includes(kind));
  const others = together.filter((kind) => !ofServers.includes(kind));
  const rounds: (readonly Fault[])[] = [];
  for (let ms = 0; ms < seconds * 1_000; ) {
    const count = chance.chance() < 0.5 ? 1 : 2 + Math.floor(chance.between(0, 2));
    const round: Fault[] = [];
    for (let index = 0; index < count; index += 1) {
      if (round.some(({ kind }) => alone.includes(kind))) break;
      // Servers are started again by one fault at a time: a server has one process.
      const beside = round.some(({ kind }) => ofServers.includes(kind)) ? others : together;
      const left = index === 0 ? all : beside;
      if (left.length === 0) break;
      const afterMs = index === 0 ? 0 : Math.round(chance.between(0, leaseMs));
      const forMs = Math.round(chance.between(100, 3 * leaseMs));
      round.push({ kind: pick(left), whom: pick(WHOM), afterMs, forMs });
    }
    const lastsMs = Math.max(...round.map(({ afterMs, forMs }) => afterMs + forMs));
    const revoked: Fault = {
      kind: 'revoke',
      whom: pick(WHOM),
      afterMs: Math.round(chance.between(0, lastsMs)),
      forMs: 0,
    };
    rounds.push(kinds.includes('revoke') ? [...round, revoked] : round);
    ms += REST_MS + Math.max(...round.map(({ afterMs, forMs }) => afterMs + forMs));
  }
  return rounds;
}

export function textOf(schedule: Schedule): string {
  const lines = schedule.map((round, index) => `  ${index + 1}. ${roundText(round)}`);
  return lines.join('\n');
}

function roundText(round: readonly Fault[]): string {
  const texts = round.map(
    ({ kind, whom, afterMs, forMs }) => `${kind} of ${whom} at ${afterMs} for ${forMs} ms`,
  );
  return texts.join(', ');
}

/** Runs a schedule on a new cluster, up to the first round that breaks a rule. @returns what is wrong */
export async function runSchedule(
  schedule: Schedule,
  { log, ...wish }: FaultyClusterWish & { readonly log: (line: string) => void },
): Promise<string[]> {
  const ends: (() => unknown)[] = [];
  const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log };
  const tell = (where: string, violations: string[]) => {
    for (const violation of violations) log(`${where}: ${violation}`);
    return violations;
  };
  try {
    const cluster = await FaultyCluster.start(scope, wish);
    for (const [index, round] of schedule.entries()) {
      const where = `round ${index + 1}`;
      const began = performance.now();
      await injectFaults(cluster, round, ({ kind }, extraMs) => {
        if (extraMs > LONG_MS) log(`${where}: ${kind} took ${Math.round(extraMs)} ms more to heal`);
      });
      const healed = performance.now();
      const violations = tell(where, await cluster.goesOn());
      if (violations.length > 0) {
        const more = await cluster.end();
        tell('timeline', cluster.timeline());
        return [...violations, ...tell(where, more)];
      }
      const [faultMs, restMs] = [healed - began, performance.now() - healed].map(Math.round);
      log(`${where}, ${roundText(round)}: healed after ${faultMs} ms, goes on after ${restMs} ms`);
    }
    const violations = tell('the end', await cluster.end());
    if (violations.length > 0) tell('timeline', cluster.timeline());
    const { calls, keys } = cluster.callers;
    const done = calls.filter(({ times }) => times > 0).length;
    log(
      `${schedule.length} rounds, ${cluster.hosts.journal().length} lines in the journal, ${keys.length} keys, ${calls.length} calls, ${done} done`,
    );
    return violations;
  } catch (error) {
    return tell('it does not go on', [
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    ]);
  } finally {
    for (const end of ends) await end();
  }
}

/**
 * Leaves rounds out of a schedule as long as what is left still breaks a rule.
 *
 * @param attempts the most that are tried
 * @param breaks whether a schedule breaks a rule
 */
export async function shrink(
  schedule: Schedule,
  attempts: number,
  breaks: (schedule: Schedule) => Promise<boolean>,
): Promise<Schedule> {
  let shortest = schedule;
  let size = Math.ceil(schedule.length / 2);
  for (let [left, from] = [attempts, 0]; left > 0 && shortest.length > 1; left -= 1) {
    const shorter = shortest.toSpliced(from, size);
    if (shorter.length > 0 && (await breaks(shorter))) shortest = shorter;
    else from += size;
    if (from < shortest.length) continue;
    if (size === 1) break;
    [size, from] = [Math.ceil(size / 2), 0];
  }
  return shortest;
}
