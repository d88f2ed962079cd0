import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readRuntimeFile } from '../src/core/runtime/index.ts';
import { type Benchmark, median, withFolder } from './measure.ts';

const binary = new URL('../bin/holdfast.js', import.meta.url).pathname;
const IDLE_MS = 20_000;
const TICKS_PER_SECOND = 100;

interface Started {
  readonly child: ChildProcess;
  readonly readyMs: number;
}

async function start(dir: string): Promise<Started> {
  const env = {
    ...process.env,
    HOLDFAST_ROUTER_PORT: '0',
    HOLDFAST_GATEWAY_PORT: '0',
    HOLDFAST_OTLP_HTTP_PORT: '0',
    HOLDFAST_OTLP_GRPC_PORT: '0',
    HOLDFAST_CONSOLE_PORT: '0',
  };
  const started = performance.now();
  const child = spawn(process.execPath, [binary, 'start', '--data-dir', dir], { stdio: 'ignore', env });
  while (readRuntimeFile(dir)?.pid !== child.pid) await sleep(2);
  return { child, readyMs: performance.now() - started };
}

/** The least that any server under Node needs: one that answers nothing. */
async function startBare(): Promise<Started> {
  const started = performance.now();
  const script = "require('node:http').createServer().listen(0, '127.0.0.1', () => console.log('ready'))";
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  return { child, readyMs: performance.now() - started };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

async function idle({ child }: Started): Promise<{ rss: number; cpu: number }> {
  const pid = child.pid as number;
  await sleep(3_000);
  const before = cpuMs(pid);
  await sleep(IDLE_MS);
  return { rss: residentMb(pid), cpu: ((cpuMs(pid) - before) / IDLE_MS) * 100 };
}

export const idleBenchmark: Benchmark = {
  name: 'idle',
  summary: `start-up, and ${IDLE_MS / 1000} s of doing nothing, beside a bare HTTP server under the same Node`,
  run: () =>
    withFolder(async (dir) => {
      await stop((await start(dir)).child); // the first start makes keys, tables and the compile cache
      const ours: number[] = [];
      const bare: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        const running = await start(dir);
        ours.push(running.readyMs);
        await stop(running.child);
        const server = await startBare();
        bare.push(server.readyMs);
        await stop(server.child);
      }
      const running = await start(dir);
      const server = await startBare();
      const [holdfast, nothing] = await Promise.all([idle(running), idle(server)]);
      await Promise.all([stop(running.child), stop(server.child)]);
      const ready = median(ours);
      const share = (cpu: number) => `${cpu.toFixed(2)} % of a core`;
      return [
        {
          what: 'ready, from the second start on',
          ours: `${ready.toFixed(0)} ms`,
          baseline: `${median(bare).toFixed(0)} ms bare server`,
          ratio: ready / median(bare),
          target: '< 1 s',
          met: ready < 1_000,
        },
        {
          what: 'resident memory, idle',
          ours: `${holdfast.rss.toFixed(0)} MB`,
          baseline: `${nothing.rss.toFixed(0)} MB bare server`,
          ratio: holdfast.rss / nothing.rss,
          target: '< 150 MB',
          met: holdfast.rss < 150,
        },
        {
          what: 'processor, idle',
          ours: share(holdfast.cpu),
          baseline: `${share(nothing.cpu)} bare server`,
          ratio: holdfast.cpu / Math.max(nothing.cpu, 0.01),
          target: '< 0.5 %',
          met: holdfast.cpu < 0.5,
        },
      ];
    }),
};
