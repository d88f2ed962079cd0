import { manyCalls, memoryRows } from './gateway/memory.ts';
import { startPrograms } from './gateway/streams.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

const CALLS = manyCalls(100_000);

async function measure(dir: string): Promise<Result[]> {
  const { url, headers, gateway: program, load, stop } = await startPrograms(dir);
  try {
    return await memoryRows(load, { url, headers, prefix: 'bench-', program }, CALLS);
  } finally {
    stop();
  }
}

export const callsBenchmark: Benchmark = {
  name: 'calls',
  summary: `memory of the gateway over ${CALLS.toLocaleString('en')} calls of 64 clients, collected and looked at ten times (HOLDFAST_BENCH_LONG=1: a million)`,
  onRequest: true,
  run: () => withFolder(measure),
};
