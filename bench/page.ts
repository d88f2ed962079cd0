import { cpus, totalmem } from 'node:os';
import type { Benchmark, Result } from './measure.ts';

/** `docs/performance.md`, from one run. */
export function performancePage(
  runs: readonly { benchmark: Benchmark; results: readonly Result[] }[],
): string {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const sections = runs.map(({ benchmark, results }) => {
    const rows = results.map(({ what, ours, baseline, ratio, target, met }) => {
      const verdict = target === undefined ? '' : `${target}: ${met ? 'met' : 'missed'}`;
      return `| ${what} | ${ours} | ${baseline} | ${ratio.toFixed(2)} | ${verdict} |`;
    });
    const heading = `## ${benchmark.name}\n\n${benchmark.summary[0]?.toUpperCase()}${benchmark.summary.slice(1)}.`;
    return [
      heading,
      '',
      '| what | Holdfast | baseline of the same run | ratio | target |',
      '| --- | --- | --- | --- | --- |',
      ...rows,
    ].join('\n');
  });
  return `# Performance

Written by \`npm run bench -- --write\`; each figure stands beside a baseline measured in the same run, in turn with it,
because machines are shared and noisy: trust the ratios before the figures.

Machine: ${machine}. Node ${process.version}.

${sections.join('\n\n')}

## Where the time goes

- **append**: the thread that writes spends about half of a commit in the sync and the write-ahead log, a third in the
  insert with its two indices, the rest in the hash chain and in taking the rows over from the main thread. The main
  thread spends about 3 µs a record on its JSON. With one or ten records waiting, the way to the other thread and back
  shows beside a commit that a good disk makes in 0.1 ms; on a slow disk it does not, and there the main thread keeps
  running.
- **replay**: parsing a record's JSON, checking its hash, XState's transition, and comparing, in about equal parts. The
  inert scope (\`src/core/actors/machine-step.ts\`) is why all of it together costs about what XState's public function
  costs alone.
- **reconcile**: 25 ms are the settling that the field needs, the rest is five commits, one after another, and two
  requests.
`;
}
