import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Load, Order } from './gateway/load.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

const KEY = 'sk-bench-0123456789abcdef0123456789abcdef';
const ROUNDS = 3;
const SLICE_MS = 1_500;

interface Usage {
  readonly cpuMs: number;
  readonly rssMb: number;
}

/** A program of this bench on one processor: what is measured must not borrow another's time. */
class Program {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static start(name: string, processor: number, ...args: string[]): Program {
    const file = fileURLToPath(new URL(`gateway/${name}.ts`, import.meta.url));
    const child = spawn('taskset', ['-c', String(processor), process.execPath, file, ...args], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    return new Program(child);
  }

  async said<T>(): Promise<T> {
    const [message] = await once(this.#child, 'message');
    return message as T;
  }

  ask<T>(question: object): Promise<T> {
    this.#child.send(question);
    return this.said<T>();
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

interface Target {
  readonly name: 'direct' | 'proxy' | 'gateway';
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

async function session(url: string): Promise<Record<string, string>> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'x-gateway-api-key': `Bearer ${KEY}`,
  };
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers, body });
  return {
    'x-gateway-api-key': headers['x-gateway-api-key'],
    'mcp-session-id': answer.headers.get('mcp-session-id') ?? '',
  };
}

async function measure(dir: string): Promise<Result[]> {
  const upstream = Program.start('upstream', 1);
  const { url: direct } = await upstream.said<{ url: string }>();
  const proxy = Program.start('proxy', 0, direct);
  const gateway = Program.start('gateway', 0, direct, dir, KEY);
  const load = Program.start('load', 1);
  try {
    const [{ url: proxied }, { url: gated }] = await Promise.all([
      proxy.said<{ url: string }>(),
      gateway.said<{ url: string }>(),
      load.said(),
    ]);
    const targets: Target[] = [
      { name: 'direct', url: direct, headers: {}, prefix: '' },
      { name: 'proxy', url: proxied, headers: {}, prefix: '', program: proxy },
      { name: 'gateway', url: gated, headers: await session(gated), prefix: 'bench-', program: gateway },
    ];
    const results: Result[] = [];
    for (const [tool, clients] of [
      ['small', 1],
      ['small', 8],
      ['small', 64],
      ['big', 8],
      ['stream', 8],
    ] as const) {
      const measured = await interleaved(load, targets, clients, tool);
      results.push(...lines(tool, clients, measured));
    }
    return results;
  } finally {
    for (const program of [load, gateway, proxy, upstream]) program.stop();
  }
}

function lines(tool: Order['tool'], clients: number, measured: Map<string, Measured>): Result[] {
  const [direct, proxy, ours] = ['direct', 'proxy', 'gateway'].map((name) => measured.get(name) as Measured);
  if (!direct || !proxy || !ours) return [];
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
  const added = ours.p50 - direct.p50;
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
    'calls direct, through a bare undici proxy, and through the gateway, taking turns; each on one processor',
  run: () => withFolder(measure),
};
