import { setTimeout as sleep } from 'node:timers/promises';
import { median, quantile, type Result } from '../measure.ts';
import { called, type Kind, type Pairs, type Place, type Target } from './callers.ts';

/** Some 200 calls, well below what a processor can do, so that none waits for another. */
const PACED = { clients: 8, ms: 500, everyMs: 20 };
/** What a round leaves to be written to the log and the stream belongs to no other round. */
const AFTER_MS = 150;
const ADDED_MS = 0.1;

/** Calls of one host without a pause, milliseconds each. */
interface Round {
  readonly p50: number;
  /** Processor time of all threads. */
  readonly cpuMs: number;
}

/** Two rounds, one right after the other. */
export type RoundPair = Readonly<Record<Kind, Round>>;

/**
 * Calls a host of a cluster and one without in turn, in rounds of half a second. What else happens on the machine, and what changes
 * in the hosts, is much the same for two neighbouring rounds, so these are compared. The hosts are on one processor, and are called
 * from another.
 *
 * @param rounds of each host
 */
export async function pairedRounds(from: Place, hosts: Pairs, rounds: number): Promise<RoundPair[]> {
  const pairs: RoundPair[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const at of [0, 1] as const) {
      const [clustered, alone] = [hosts.clustered[at], hosts.alone[at]];
      if (round % 2 === 0) {
        pairs.push({ clustered: await oneRound(from, clustered), alone: await oneRound(from, alone) });
      } else {
        pairs.push({ alone: await oneRound(from, alone), clustered: await oneRound(from, clustered) });
      }
    }
  }
  return pairs;
}

async function oneRound(from: Place, target: Target): Promise<Round> {
  const before = target.host.cpuMs();
  const { p50, calls } = await called(from, target, PACED);
  await sleep(AFTER_MS);
  return { p50, cpuMs: (target.host.cpuMs() - before) / calls };
}

/** @param starts the pairs of each start: the same code, started again, differs from itself */
export function addedRows(starts: readonly (readonly RoundPair[])[]): Result[] {
  const pairs = starts.flat();
  const p50 = comparison(pairs, 'p50');
  const cpu = comparison(pairs, 'cpuMs');
  const byStart = starts.map((one) => comparison(one, 'p50').added);
  const [least, most] = [Math.min(...byStart), Math.max(...byStart)];
  return [
    {
      what: `a call at a host, ${PACED.clients} clients, each every ${PACED.everyMs} ms, p50, of ${pairs.length} pairs of rounds in ${starts.length} starts`,
      ours: `${p50.clustered.toFixed(2)} ms`,
      baseline: `${p50.alone.toFixed(2)} ms without a cluster; added ${spread(p50)} (${least.toFixed(3)} to ${most.toFixed(3)} by start)`,
      ratio: p50.clustered / p50.alone,
      target: `< ${ADDED_MS} ms added, in each start`,
      met: most < ADDED_MS,
    },
    {
      what: 'the same: processor a call, all threads',
      ours: `${cpu.clustered.toFixed(3)} ms`,
      baseline: `${cpu.alone.toFixed(3)} ms without a cluster; added ${spread(cpu)}`,
      ratio: cpu.clustered / cpu.alone,
    },
  ];
}

interface Comparison {
  /** Medians of the rounds. */
  readonly clustered: number;
  readonly alone: number;
  /** Quartiles of the differences within a pair. */
  readonly lower: number;
  readonly added: number;
  readonly upper: number;
}

function comparison(pairs: readonly RoundPair[], figure: keyof Round): Comparison {
  const differences = pairs.map(({ clustered, alone }) => clustered[figure] - alone[figure]);
  return {
    clustered: median(pairs.map(({ clustered }) => clustered[figure])),
    alone: median(pairs.map(({ alone }) => alone[figure])),
    lower: quantile(differences, 0.25),
    added: median(differences),
    upper: quantile(differences, 0.75),
  };
}

function spread({ lower, added, upper }: Comparison): string {
  return `${added.toFixed(3)} ms, quartiles ${lower.toFixed(3)} and ${upper.toFixed(3)}`;
}
