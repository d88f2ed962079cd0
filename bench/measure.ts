import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One line of a benchmark's report. */
export interface Result {
  readonly what: string;
  /** What was measured, with its unit. */
  readonly ours: string;
  /** The baseline of the same run, with its unit. */
  readonly baseline: string;
  /** Ours against the baseline. */
  readonly ratio: number;
  /** DESIGN §8, in words; absent where none is set. */
  readonly target?: string;
  readonly met?: boolean;
}

/** A benchmark: runs for seconds, prints nothing, returns its lines. */
export interface Benchmark {
  readonly name: string;
  readonly summary: string;
  readonly run: () => Promise<readonly Result[]>;
}

/**
 * Ours and the baseline in turn, a few times: what else the machine does then falls on both. The ratio is the median
 * of the rounds' ratios, the figures are the medians.
 *
 * @param rates each returns how many a second
 */
export async function interleaved(
  rounds: number,
  ours: () => Promise<number>,
  baseline: () => Promise<number>,
) {
  const pairs: { ours: number; baseline: number }[] = [];
  await baseline(); // warm both before the first round counts
  await ours();
  for (let round = 0; round < rounds; round += 1) {
    pairs.push(
      round % 2
        ? { ours: await ours(), baseline: await baseline() }
        : { baseline: await baseline(), ours: await ours() },
    );
  }
  return {
    ours: median(pairs.map((pair) => pair.ours)),
    baseline: median(pairs.map((pair) => pair.baseline)),
    ratio: median(pairs.map((pair) => pair.ours / pair.baseline)),
  };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** @param at between 0 and 1 */
export function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN;
}

/** Runs work in a folder of its own that is gone afterwards. */
export async function withFolder<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  try {
    return await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** 12345.6 as `12,346/s`. */
export function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString('en')}/s`;
}
