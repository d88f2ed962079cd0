import { fakeDisk } from '../test/support/disk.ts';
import type { Load, Order } from './gateway/load.ts';
import { Program } from './gateway/program.ts';
import { KEY, session } from './gateway/session.ts';
import type { Usage } from './gateway/usage.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

const ROUNDS = 3;
const SLICE_MS = 1_500;
/** V8 makes machine code of the hot path in its first twenty thousand calls or so. */
const WARM_MS = 12_000;
const SYNC_MS = 20;
/** Calls of the memory row: a million takes ten minutes. */
const MANY_MS = process.env.HOLDFAST_BENCH_LONG ? 600_000 : 15_000;

interface Target {
  readonly name: 'direct' | 'proxy' | 'gateway' | 'slow';
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly prefix: string;
  readonly program?: Program;
}

interface Measured extends Load {
  readonly cpuPerCallMs: number;
  readonly rssMb: number;
}

/** Runs the same load against all targets, taking turns, and keeps the middle round of each. */
async function interleaved(
  load: Program,
  targets: readonly Target[],
  clients: number,
  tool: Order['tool'],
): Promise<Map<string, Measured>> {
  const rounds = new Map<string, Measured[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { name, url, headers, prefix, program } of targets) {
      const before = await program?.ask<Usage>({});
      const order: Order = { url, clients, ms: SLICE_MS, tool, headers, prefix };
      const loaded = await load.ask<Load>(order);
      const after = await program?.ask<Usage>({});
      if (loaded.failed > 0) throw new Error(`${name}: ${loaded.failed} of ${loaded.calls} calls failed`);
      const cpuPerCallMs = ((after?.cpuMs ?? 0) - (before?.cpuMs ?? 0)) / loaded.calls;
      rounds.set(name, [...(rounds.get(name) ?? []), { ...loaded, cpuPerCallMs, rssMb: after?.rssMb ?? 0 }]);
    }
  }
  const middle = (all: Measured[]) => all.toSorted((a, b) => a.rate - b.rate)[Math.floor(all.length / 2)];
  return new Map([...rounds].map(([name, all]) => [name, middle(all) as Measured]));
}

async function measure(dir: string): Promise<Result[]> {
  const upstream = Program.start('upstream', 1);
  const { url: direct } = await upstream.said<{ url: string }>();
  const proxy = Program.start('proxy', 0, [direct]);
  const gateway = Program.start('gateway', 0, [direct, `${dir}/fast`, KEY]);
  const { env } = fakeDisk(dir, SYNC_MS);
  const slow = Program.start('gateway', 0, [direct, `${dir}/slow`, KEY], env);
  const load = Program.start('load', 1);
  try {
    const said = <T>(program: Program) => program.said<T>();
    const [proxied, gated, slowed] = await Promise.all([
      said<{ url: string }>(proxy),
      said<{ url: string }>(gateway),
      said<{ url: string }>(slow),
      said(load),
    ]);
    const through = async (name: 'gateway' | 'slow', url: string, program: Program): Promise<Target> => {
      return { name, url, headers: await session(url), prefix: 'bench-', program };
    };
    const targets: Target[] = [
      { name: 'direct', url: direct, headers: {}, prefix: '' },
      { name: 'proxy', url: proxied.url, headers: {}, prefix: '', program: proxy },
      await through('gateway', gated.url, gateway),
      await through('slow', slowed.url, slow),
    ];
    for (const { url, headers, prefix } of targets) {
      await load.ask({ url, clients: 64, ms: WARM_MS, tool: 'small', headers, prefix } satisfies Order);
    }
    const results: Result[] = [];
    for (const [tool, clients] of [
      ['small', 1],
      ['small', 8],
      ['small', 64],
      ['big', 8],
      ['stream', 8],
    ] as const) {
      const measured = await interleaved(load, targets, clients, tool);
      results.push(...rows(tool, clients, measured));
    }
    const [, , ours] = targets;
    if (ours) results.push(await memory(load, ours));
    return results;
  } finally {
    for (const program of [load, slow, gateway, proxy, upstream]) program.stop();
  }
}

/** What the process holds after so many calls more. */
async function memory(load: Program, { url, headers, prefix, program }: Target): Promise<Result> {
  const before = await program?.ask<Usage>({});
  const order: Order = { url, clients: 64, ms: MANY_MS, tool: 'small', headers, prefix };
  const { calls } = await load.ask<Load>(order);
  const after = await program?.ask<Usage>({});
  const [then, now] = [before?.rssMb ?? 0, after?.rssMb ?? 0];
  return {
    what: `memory after ${calls.toLocaleString('en')} calls more`,
    ours: `${now.toFixed(0)} MB`,
    baseline: `${then.toFixed(0)} MB before them`,
    ratio: now / then,
    target: 'flat',
    met: now < then * 1.2,
  };
}

function rows(tool: Order['tool'], clients: number, measured: Map<string, Measured>): Result[] {
  const [direct, proxy, ours, slow] = ['direct', 'proxy', 'gateway', 'slow'].map(
    (name) => measured.get(name) as Measured,
  );
  if (!direct || !proxy || !ours || !slow) return [];
  if (tool === 'stream') {
    const added = ours.first - direct.first;
    return [
      {
        what: `event stream, first byte, ${clients} clients`,
        ours: `${ours.first.toFixed(2)} ms`,
        baseline: `${direct.first.toFixed(2)} ms direct, ${proxy.first.toFixed(2)} ms proxy`,
        ratio: ours.first / direct.first,
        target: '< 5 ms added',
        met: added < 5,
      },
    ];
  }
  const ratio = ours.rate / proxy.rate;
  const added = ours.p50 - proxy.p50;
  const size = tool === 'big' ? '1 MB' : 'small';
  return [
    {
      what: `${size} results, ${clients} clients, calls/s`,
      ours: `${ours.rate.toFixed(0)}/s`,
      baseline: `${proxy.rate.toFixed(0)}/s bare undici proxy`,
      ratio,
      target: '≥ 0.6',
      met: ratio >= 0.6,
    },
    {
      what: `${size} results, ${clients} clients, p50`,
      ours: `${ours.p50.toFixed(2)} ms`,
      baseline: `${direct.p50.toFixed(2)} ms direct, ${proxy.p50.toFixed(2)} ms proxy`,
      ratio: ours.p50 / proxy.p50,
      ...(clients === 8 && tool === 'small' && { target: '< 0.3 ms added', met: added < 0.3 }),
    },
    {
      what: `the same with ${SYNC_MS} ms in every sync of the disk`,
      ours: `${slow.p50.toFixed(2)} ms`,
      baseline: `${ours.p50.toFixed(2)} ms without`,
      ratio: slow.p50 / ours.p50,
      ...(clients === 8 && tool === 'small' && { target: '< 0.3 ms more', met: slow.p50 - ours.p50 < 0.3 }),
    },
    {
      what: `${size} results, ${clients} clients, p99 · CPU · RSS`,
      ours: `${ours.p99.toFixed(2)} ms · ${ours.cpuPerCallMs.toFixed(3)} ms · ${ours.rssMb.toFixed(0)} MB`,
      baseline: `${proxy.p99.toFixed(2)} ms · ${proxy.cpuPerCallMs.toFixed(3)} ms · ${proxy.rssMb.toFixed(0)} MB proxy`,
      ratio: ours.cpuPerCallMs / proxy.cpuPerCallMs,
    },
  ];
}

export const gatewayBenchmark: Benchmark = {
  name: 'gateway',
  summary:
    'calls direct, through a bare undici proxy, and through the gateway with key, scope, limit, log and spans, taking turns; each on one processor',
  run: () => withFolder(measure),
};
