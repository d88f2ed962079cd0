import { aggregateRows } from './gateway/aggregate.ts';
import type { Load, Order } from './gateway/load.ts';
import { manyCalls, memoryRows } from './gateway/memory.ts';
import type { Program } from './gateway/program.ts';
import { type Measured, pacedRows, rows, streamRow, type Used } from './gateway/rows.ts';
import { startTargets, type Target } from './gateway/targets.ts';
import type { Usage } from './gateway/usage.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

/**
 * Short turns: of a process that is idle for some seconds V8 takes back memory and machine code, and it would be the
 * getting warm again that is measured.
 */
const ROUNDS = 10;
const SLICE_MS = 300;
/** V8 makes machine code of the hot path in its first twenty thousand calls or so: so many turns of each, and calls a turn. */
const WARM_TURNS = 10;
const WARM_MS = 1_200;
const WARM_CALLS = { small: 2_000, big: 100 } as const;
const SYNC_MS = 20;
/** Well below what one processor can do, so that no call waits for another: eight clients make 400 calls a second. */
const PACED_MS = 20;

/** Runs the same load against all targets, taking turns, and keeps the middle of all rounds of each figure. */
async function interleaved(
  load: Program,
  targets: readonly Target[],
  asked: Pick<Order, 'clients' | 'tool' | 'everyMs'>,
): Promise<Measured> {
  const rounds: Record<Target['name'], Used[]> = { direct: [], proxy: [], gateway: [], slow: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { name, url, headers, prefix, program } of targets) {
      const before = await program?.ask<Usage>({});
      const order: Order = { ...asked, url, ms: SLICE_MS, headers, prefix };
      const loaded = await load.ask<Load>(order);
      const after = await program?.ask<Usage>({});
      if (loaded.failed > 0) throw new Error(`${name}: ${loaded.failed} of ${loaded.calls} calls failed`);
      const cpuPerCallMs = ((after?.cpuMs ?? 0) - (before?.cpuMs ?? 0)) / loaded.calls;
      rounds[name].push({ ...loaded, cpuPerCallMs, rssMb: after?.rssMb ?? 0 });
    }
  }
  const { direct, proxy, gateway, slow } = rounds;
  return { direct: middle(direct), proxy: middle(proxy), gateway: middle(gateway), slow: middle(slow) };
}

/** Each figure by itself: the round with the middle p50 may be the one with the longest pause. */
function middle(rounds: readonly Used[]): Used {
  const figures = Object.keys(rounds[0] as Used) as (keyof Used)[];
  const of = (figure: keyof Used) =>
    rounds.map((round) => round[figure]).toSorted((a, b) => a - b)[Math.floor(rounds.length / 2)];
  return Object.fromEntries(figures.map((figure) => [figure, of(figure)])) as unknown as Used;
}

async function measure(dir: string): Promise<Result[]> {
  const { all, load, stop } = await startTargets(dir, SYNC_MS);
  try {
    for (let turn = 0; turn < WARM_TURNS; turn += 1) {
      for (const { url, headers, prefix } of all) {
        for (const tool of ['small', 'big'] as const) {
          const calls = WARM_CALLS[tool];
          const order: Order = { url, clients: 64, ms: WARM_MS, calls, tool, headers, prefix };
          await load.ask(order);
        }
      }
    }
    const results: Result[] = [];
    for (const clients of [1, 8, 64]) {
      results.push(
        ...rows('small', clients, await interleaved(load, all, { tool: 'small', clients }), SYNC_MS),
      );
    }
    const paced = await interleaved(load, all, { tool: 'small', clients: 8, everyMs: PACED_MS });
    results.push(...pacedRows(8, PACED_MS, paced, SYNC_MS));
    results.push(...rows('1 MB', 8, await interleaved(load, all, { tool: 'big', clients: 8 }), SYNC_MS));
    results.push(streamRow(8, await interleaved(load, all, { tool: 'stream', clients: 8 })));
    const { url, headers, prefix, program } = all.find(({ name }) => name === 'gateway') as Required<Target>;
    results.push(...(await memoryRows(load, { url, headers, prefix, program }, manyCalls(100_000))));
    return results;
  } finally {
    stop();
  }
}

export const gatewayBenchmark: Benchmark = {
  name: 'gateway',
  summary:
    'calls direct, through a bare undici proxy, and through the gateway with key, scope, limit, log and spans, taking turns; each on one processor',
  run: () => withFolder(async (dir) => [...(await measure(dir)), ...(await aggregateRows(dir))]),
};
