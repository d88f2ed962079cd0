import { cpus, totalmem } from 'node:os';
import type { Benchmark, Result } from './measure.ts';

export interface Run {
  readonly benchmark: Benchmark;
  readonly results: readonly Result[];
  /** The machine's load average when it began. */
  readonly load: number;
}

/**
 * `docs/performance.md`: the sections of what ran are made anew, the others stay.
 *
 * @param names of all benchmarks, in the page's order
 * @param before the page as it is
 */
export function performancePage(runs: readonly Run[], names: readonly string[], before: string): string {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const sections = names.flatMap((name) => {
    const run = runs.find(({ benchmark }) => benchmark.name === name);
    return run ? section(run) : (before.match(new RegExp(`^## ${name}\n[^]*?(?=\n\n## )`, 'm'))?.[0] ?? []);
  });
  return `# Performance

Written by \`npm run bench -- --write\`; each figure stands beside a baseline measured in the same run, in turn with it,
because machines are shared and noisy: trust the ratios before the figures. A section may name the machine's
load average when it began. Above the number of processors, other work took its share, and what needs two processors at
once, as the log does, suffers more than a baseline that needs one.

Machine: ${machine}. Node ${process.version}.

${sections.join('\n\n')}

## Where the time goes

- **append**: the thread that writes spends about 10 µs a record in the sync and the write-ahead log, 8 in the insert with
  its two indices, 3 in the hash chain and 2 in taking the rows over from the main thread. The main thread spends about
  3 µs a record on its JSON. The raw inserts need one processor where the log needs two: on a machine with other work the
  ratio falls. With one or ten records waiting, the way to the other thread and back shows beside a commit that a good
  disk makes in 0.1 ms; on a slow disk it does not, and there the main thread keeps running.
- **stall**: what a turn of the main thread waited for a processor that another process had is taken off. A disk that
  takes 20 ms for each sync holds up the main thread no longer than one that takes none.
- **replay**: parsing a record's JSON, checking its hash, XState's transition, and comparing, in about equal parts. The
  inert scope (\`src/core/actors/machine-step.ts\`) is why all of it together costs about what XState's public function
  costs alone.
- **reconcile**: 25 ms are the settling that the field needs, the rest is five commits, one after another, and two
  requests.
- **router**: a save is parsed, brought into canonical JSON for its fingerprint, sealed, compared with the config before
  it, applied, and written to Redis with a history; bare Redis does the last of these. With racing writers seven of eight
  posts are refused by the optimistic lock, here as there. A config of 1 MiB, hundreds of times the usual, goes through
  the same steps on the main thread, which is held up as the table says.

- **gateway**: a proxy of \`undici.request\` and a pipe spends half of its time in streams and promises between the two
  sockets. The gateway has neither: it hears undici's dispatch itself, and a plain call reaches it past fastify. What it
  saves there it spends on the call: of its main thread undici and Node's HTTP on both sides take some 30 %, deciding
  and logging the call's two records 25 % (a third of that in XState's transitions), the door, the key and what may be
  wrong with the message 10 %, collecting garbage 6 %, the span and the metrics 5 %, the rest is naming, passing on and
  listening. The
  log's thread takes some 45 µs a call more, as its records wait for company: it shares the one processor here, and does
  not where there are two. A large result is searched part by part as it passes and kept until its end, for only then is
  it known whether it tells of an error; that memory is most of what it costs more than the proxy. With eight clients on
  one processor each waits for the other seven, so that p50 is eight times the time of a call: 0.3 ms more than the proxy
  would leave 40 µs for everything that a call is decided and recorded by, which two durable records alone exceed. A slow
  disk changes nothing, for admitted calls do not wait for it.

## Advice for flash storage

Each commit writes whole pages: the end of the table, of two indices, and their copies in the write-ahead log, some
20 KiB for a record of 0.4 KiB. What wears a card is commits, not records. So on an SD card or eMMC set
\`data: { lingerMs: 1000 }\` in \`plugins.config.ts\`: batched records then share one commit a second, which costs about a
quarter of the bytes at 20 records a second (the figures stand under *append*), and a power cut can cost batched
decisions of the last second. Records that must be durable before their effects run do not linger; a quiet network
writes few of them. \`log_commit_seconds_count\` on \`/metrics\` tells how many commits there were.
`;
}

function section({ benchmark: { name, summary }, results, load }: Run): string {
  const rows = results.map(({ what, ours, baseline, ratio, target, met }) => {
    const verdict = target === undefined ? '' : `${target}: ${met ? 'met' : 'missed'}`;
    return `| ${what} | ${ours} | ${baseline} | ${ratio.toFixed(2)} | ${verdict} |`;
  });
  return [
    `## ${name}\n\n${summary[0]?.toUpperCase()}${summary.slice(1)}. Load: ${load.toFixed(1)}.`,
    '',
    '| what | Holdfast | baseline of the same run | ratio | target |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}
