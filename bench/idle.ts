import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readRuntimeFile } from '../src/core/host/runtime/runtime-file.ts';
import { type Benchmark, median, withFolder } from './measure.ts';

const binary = new URL('../bin/holdfast.js', import.meta.url).pathname;
const IDLE_MS = 20_000;
/** After a start tables are looked at, rules look for the first time, and what the start left is cleared away. */
const SETTLE_MS = 15_000;
const TICKS_PER_SECOND = 100;
const ROUNDS = 3;

interface Started {
  readonly child: ChildProcess;
  readonly readyMs: number;
}

const ANY_PORT = Object.fromEntries(
  ['ROUTER', 'GATEWAY', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME', 'MEMORY', 'CONSOLE'].map((surface) => [
    `HOLDFAST_${surface}_PORT`,
    '0',
  ]),
);

/** A server that is not there: without the embedded engine, and with nothing in its place. */
const NO_ENGINE = { HOLDFAST_CLICKHOUSE_URL: 'http://127.0.0.1:9' };

/** The configuration as it is shipped, every surface on a free port. */
async function start(dir: string, more: Readonly<Record<string, string>> = {}): Promise<Started> {
  const env = { ...process.env, ...ANY_PORT, ...more };
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
  await sleep(SETTLE_MS);
  const before = cpuMs(pid);
  await sleep(IDLE_MS);
  return { rss: residentMb(pid), cpu: ((cpuMs(pid) - before) / IDLE_MS) * 100 };
}

/** From the second start on: the first makes keys, tables and the compile cache. */
async function measure(dir: string, more: Readonly<Record<string, string>> = {}) {
  await stop((await start(dir, more)).child);
  const ready: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const running = await start(dir, more);
    ready.push(running.readyMs);
    await stop(running.child);
  }
  const running = await start(dir, more);
  const found = { ready: median(ready), ...(await idle(running)) };
  await stop(running.child);
  return found;
}

async function measureBare() {
  const ready: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await startBare();
    ready.push(server.readyMs);
    await stop(server.child);
  }
  const server = await startBare();
  const found = { ready: median(ready), ...(await idle(server)) };
  await stop(server.child);
  return found;
}

const share = (cpu: number) => `${cpu.toFixed(2)} % of a core`;

export const idleBenchmark: Benchmark = {
  name: 'idle',
  summary: `the shipped configuration, with the embedded database and without: start-up, and ${IDLE_MS / 1000} s of doing nothing, beside a bare HTTP server under the same Node`,
  run: () =>
    withFolder(async (dir) => {
      const bare = await measureBare();
      const without = await measure(join(dir, 'without'), NO_ENGINE);
      const shipped = await measure(join(dir, 'shipped'));
      const rows = (found: typeof bare, which: string, most?: number) => [
        {
          what: `ready, from the second start on, ${which}`,
          ours: `${found.ready.toFixed(0)} ms`,
          baseline: `${bare.ready.toFixed(0)} ms bare server`,
          ratio: found.ready / bare.ready,
          target: '< 1 s',
          met: found.ready < 1_000,
        },
        {
          what: `resident memory, idle, ${which}`,
          ours: `${found.rss.toFixed(0)} MB`,
          baseline: `${bare.rss.toFixed(0)} MB bare server`,
          ratio: found.rss / bare.rss,
          ...(most !== undefined && { target: `< ${most} MB`, met: found.rss < most }),
        },
        {
          what: `processor, idle, ${which}`,
          ours: share(found.cpu),
          baseline: `${share(bare.cpu)} bare server`,
          ratio: found.cpu / Math.max(bare.cpu, 0.01),
          target: '< 0.5 %',
          met: found.cpu < 0.5,
        },
      ];
      return [...rows(without, 'no engine', 150), ...rows(shipped, 'engine open')];
    }),
};
