import type { Load, Order } from './gateway/load.ts';
import { startPrograms } from './gateway/streams.ts';
import type { Usage } from './gateway/usage.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

/** In all; `CALLS=1000000` makes a million of them. */
const CALLS = Number(process.env.CALLS ?? 100_000);
const PARTS = 10;
/** Longest that one part may take, milliseconds. */
const PART_MS = 600_000;

/** The least-squares line through the values of equal steps. @returns what it rises by in one step */
function slope(values: readonly number[]): number {
  const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length;
  const at = mean(values.keys().toArray());
  const middle = mean(values);
  const rise = values.map((value, step) => (step - at) * (value - middle));
  return mean(rise) / mean(values.map((_, step) => (step - at) ** 2));
}

async function measure(dir: string): Promise<Result[]> {
  const { url, headers, gateway, load, stop } = await startPrograms(dir);
  try {
    const used: Usage[] = [];
    let calls = 0;
    let failed = 0;
    for (let part = 0; part < PARTS; part += 1) {
      const some = Math.ceil(CALLS / PARTS);
      const order: Order = {
        url,
        headers,
        prefix: 'bench-',
        tool: 'small',
        clients: 64,
        ms: PART_MS,
        calls: some,
      };
      const told = await load.ask<Load>(order);
      calls += told.calls;
      failed += told.failed;
      used.push(await gateway.ask<Usage>({ collect: true }));
    }
    // The first parts warm up: code, pools, the states of actors.
    const settled = used.slice(PARTS / 5);
    const bytesPerCall = (key: 'heapMb' | 'rssMb') =>
      (slope(settled.map((usage) => usage[key])) * 2 ** 20) / (CALLS / PARTS);
    const row = (key: 'heapMb' | 'rssMb', what: string): Result => {
      const [first = 0, last = 0] = [settled[0]?.[key], settled.at(-1)?.[key]];
      const each = bytesPerCall(key);
      return {
        what: `${calls.toLocaleString('en')} calls, ${what}`,
        ours: `${last.toFixed(1)} MB`,
        baseline: `${first.toFixed(1)} MB after a fifth; ${each.toFixed(1)} bytes a call`,
        ratio: last / first,
        target: 'flat, no call fails',
        met: failed === 0 && last < first * 1.2,
      };
    };
    return [row('heapMb', 'heap'), row('rssMb', 'RSS')];
  } finally {
    stop();
  }
}

export const callsBenchmark: Benchmark = {
  name: 'calls',
  summary: `memory of the gateway over ${CALLS.toLocaleString('en')} calls of 64 clients (CALLS=1000000 for a million)`,
  onRequest: true,
  run: () => withFolder(measure),
};
