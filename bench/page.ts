import { cpus, totalmem } from 'node:os';
import type { Benchmark, Result } from './measure.ts';

export interface Run {
  readonly benchmark: Benchmark;
  readonly results: readonly Result[];
  /** The machine's load average when it began. */
  readonly load: number;
}

/** What a person wrote of all figures; it begins here. */
const PROSE = '## Where the time goes';

/**
 * `docs/performance.md`: the tables of what ran are made anew; the others stay, and so does what a person wrote below a
 * table and behind all of them.
 *
 * @param names of all benchmarks, in the page's order
 * @param before the page as it is
 */
export function performancePage(runs: readonly Run[], names: readonly string[], before: string): string {
  const sections = names.flatMap((name) => {
    const run = runs.find(({ benchmark }) => benchmark.name === name);
    const there = before.match(new RegExp(`^## ${name}\n[^]*?(?=\n\n## )`, 'm'))?.[0];
    if (!run) return there ?? [];
    const prose = there?.slice(there.lastIndexOf(' |') + 2).trim();
    return prose ? `${section(run)}\n\n${prose}` : section(run);
  });
  const prose = before.includes(PROSE) ? before.slice(before.indexOf(PROSE)).trimEnd() : PROSE;
  return `# Performance

Written by \`npm run bench -- --write\`. Each figure has a baseline that was measured in the same run, in alternation with it,
because machines are shared and their speed varies: the ratios are more reliable than the figures. A section names the
machine it was measured on, with its load average at the beginning. If that is above the number of processors, other work took part of the time, and the
log, which needs two processors at once, is slowed down more than a baseline that needs one.

${sections.join('\n\n')}

${prose}
`;
}

function section({ benchmark: { name, summary }, results, load }: Run): string {
  const processors = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`;
  const machine = `${processors}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  const rows = results.map(({ what, ours, baseline, ratio, target, met }) => {
    const verdict = target === undefined ? '' : `${target}: ${met ? 'met' : 'missed'}`;
    return `| ${what} | ${ours} | ${baseline} | ${ratio.toFixed(2)} | ${verdict} |`;
  });
  return [
    `## ${name}\n\n${summary[0]?.toUpperCase()}${summary.slice(1)}. Load: ${load.toFixed(1)}, on ${machine}.`,
    '',
    '| what | Holdfast | baseline of the same run | ratio | target |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}
