/**
 * `npm run bench [-- name …]`: runs the benchmarks one after another and prints each figure beside the baseline that
 * was measured in the same run. With `--write` they enter `docs/performance.md`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { alertsBenchmark } from './alerts.ts';
import { appendBenchmark } from './append.ts';
import { callsBenchmark } from './calls.ts';
import { clusterBenchmark } from './cluster.ts';
import { commandsBenchmark } from './commands.ts';
import { consoleBenchmark } from './console.ts';
import { gatewayBenchmark } from './gateway.ts';
import { idleBenchmark } from './idle.ts';
import { ingestBenchmark } from './ingest.ts';
import { killBenchmark } from './kill.ts';
import type { Benchmark, Result } from './measure.ts';
import { memoryBenchmark } from './memory.ts';
import { otlpBenchmark } from './otlp.ts';
import { performancePage, type Run } from './page.ts';
import { reconcileBenchmark } from './reconcile.ts';
import { replayBenchmark } from './replay.ts';
import { routerBenchmark } from './router/index.ts';
import { routesBenchmark } from './routes.ts';
import { stallBenchmark } from './stall.ts';
import { streamsBenchmark } from './streams.ts';

const all: readonly Benchmark[] = [
  appendBenchmark,
  stallBenchmark,
  replayBenchmark,
  reconcileBenchmark,
  gatewayBenchmark,
  routesBenchmark,
  streamsBenchmark,
  callsBenchmark,
  routerBenchmark,
  ingestBenchmark,
  otlpBenchmark,
  memoryBenchmark,
  alertsBenchmark,
  consoleBenchmark,
  clusterBenchmark,
  idleBenchmark,
  commandsBenchmark,
  killBenchmark,
];

const write = process.argv.includes('--write');
const names = process.argv.slice(2).filter((argument) => argument !== '--write');
const unknown = names.filter((name) => !all.some((benchmark) => benchmark.name === name));
if (unknown.length > 0) {
  console.error(
    `There is no benchmark ${unknown.join(', ')}; choose from: ${all.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`);
const runs: Run[] = [];
for (const benchmark of all) {
  if (names.length > 0 ? !names.includes(benchmark.name) : benchmark.onRequest) continue;
  console.log(`\n${benchmark.name}: ${benchmark.summary}`);
  const [load = 0] = loadavg();
  const results = await benchmark.run();
  for (const result of results) console.log(line(result));
  runs.push({ benchmark, results, load });
}
if (write) {
  const page = new URL('../docs/performance.md', import.meta.url);
  const names = all.map(({ name }) => name);
  writeFileSync(page, performancePage(runs, names, readFileSync(page, 'utf8')));
}

function line({ what, ours, baseline, ratio, target, met }: Result): string {
  const verdict = target === undefined ? '' : `  target ${target}: ${met ? 'met' : 'MISSED'}`;
  return `  ${what.padEnd(44)} ${ours.padStart(16)}   ${baseline.padStart(38)}   ratio ${ratio.toFixed(2)}${verdict}`;
}
