import { readFileSync } from 'node:fs';
import type { Scope } from '../test/support/scope.ts';
import { tempDir } from '../test/support/temp.ts';

/** One line of a benchmark's report. */
export interface Result {
  readonly what: string;
  /** What was measured, with its unit. */
  readonly ours: string;
  /** The baseline of the same run, with its unit. */
  readonly baseline: string;
  /** Ours against the baseline. */
  readonly ratio: number;
  /** The budget in words; absent where none is set. */
  readonly target?: string;
  readonly met?: boolean;
}

/** A benchmark: runs for seconds, prints nothing, returns its lines. */
export interface Benchmark {
  readonly name: string;
  readonly summary: string;
  /** It takes long: it runs only when it is named. */
  readonly onRequest?: boolean;
  readonly run: () => Promise<readonly Result[]>;
}

/**
 * Several works in turn, a few times, after each has been warmed up once.
 *
 * @param works each returns how many a second
 * @returns the fastest round of each: whatever else the machine does can only slow a round down
 */
export async function fastest<K extends string>(
  rounds: number,
  works: Readonly<Record<K, () => Promise<number>>>,
): Promise<Record<K, number>> {
  const names = Object.keys(works) as K[];
  const best = Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
  for (const name of names) await works[name]();
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 ? names.toReversed() : names) {
      best[name] = Math.max(best[name], await works[name]());
    }
  }
  return best;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** @param at between 0 and 1 */
export function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN;
}

/**
 * How long a part of a benchmark may go on, milliseconds; what it says tells how far it came. A run with
 * HOLDFAST_BENCH_LONG=1 takes its time.
 */
export function patience(ms = 40_000): number {
  return process.env.HOLDFAST_BENCH_LONG === '1' ? Number.POSITIVE_INFINITY : ms;
}

/** Runs work in a folder of its own that is gone afterwards. */
export async function withFolder<T>(work: (dir: string) => Promise<T>): Promise<T> {
  return withScope((scope) => work(tempDir(scope)));
}

/** Runs work, then everything that it asked to be run at the end, the last first. */
export async function withScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = [];
  try {
    return await work({
      teardown: (end) => void ends.unshift(end),
      log: (...lines) => console.log(...lines),
    });
  } finally {
    for (const end of ends) await end();
  }
}

/** 12345.6 as `12,346/s`. */
export function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString('en')}/s`;
}

/** How long this thread has stood in the line for a processor that something else had, milliseconds. */
export function schedulerWaitMs(): number {
  const [, waited] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ');
  return Number(waited) / 1e6;
}
