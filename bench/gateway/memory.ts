import type { Result } from '../measure.ts';
import type { Load, Order } from './load.ts';
import type { Program } from './program.ts';
import type { Usage } from './usage.ts';

/** Looked at after each of them, after a garbage collection. */
const PARTS = 10;
const CLIENTS = 64;
/** Longest that one part may take, milliseconds. */
const PART_MS = 600_000;
/** Of what is held, that may be added by the second half of the calls. */
const FLAT = 0.05;

/** How many calls the memory is looked at over: a million in a run with HOLDFAST_BENCH_LONG=1, which takes ten minutes. */
export function manyCalls(otherwise: number): number {
  return process.env.HOLDFAST_BENCH_LONG === '1' ? 1_000_000 : otherwise;
}

/**
 * What a process holds over so many calls. The first half warms up: code, pools, the states of actors. Whether it is
 * flat, the line through the second half tells.
 */
export async function memoryRows(
  load: Program,
  { program, ...target }: Pick<Order, 'url' | 'headers' | 'prefix'> & { readonly program: Program },
  calls: number,
): Promise<Result[]> {
  const used: Usage[] = [];
  const some = Math.ceil(calls / PARTS);
  const order: Order = { ...target, tool: 'small', clients: CLIENTS, ms: PART_MS, calls: some };
  let done = 0;
  for (let part = 0; part < PARTS; part += 1) {
    const told = await load.ask<Load>(order);
    if (told.failed > 0) throw new Error(`${told.failed} of ${told.calls} calls failed`);
    done += told.calls;
    used.push(await program.ask<Usage>({ collect: true }));
  }
  const row = (key: 'heapMb' | 'rssMb', what: string): Result => {
    const values = used.map((usage) => usage[key]);
    const half = values.slice(PARTS / 2);
    const [middle = 0, last = 0] = [values[PARTS / 2 - 1], values.at(-1)];
    const each = (slope(half) * 2 ** 20) / some;
    return {
      what: `${done.toLocaleString('en')} calls, ${what}`,
      ours: `${last.toFixed(1)} MB`,
      baseline: `${middle.toFixed(1)} MB after half of them; ${each.toFixed(1)} bytes a call since`,
      ratio: last / middle,
      target: 'flat',
      met: slope(half) * half.length < middle * FLAT,
    };
  };
  return [row('heapMb', 'heap'), row('rssMb', 'RSS')];
}

/** The least-squares line through the values of equal steps. @returns what it rises by in one step */
function slope(values: readonly number[]): number {
  const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length;
  const at = mean(values.keys().toArray());
  const middle = mean(values);
  const rise = values.map((value, step) => (step - at) * (value - middle));
  return mean(rise) / mean(values.map((_, step) => (step - at) ** 2));
}
