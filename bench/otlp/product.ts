import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { type Result, withFolder } from '../measure.ts';
import { send } from './send.ts';

const binary = new URL('../../bin/holdfast.js', import.meta.url).pathname;
/** Five minutes where HOLDFAST_BENCH_LONG=1. */
const OVERLOAD_MS = process.env.HOLDFAST_BENCH_LONG === '1' ? 300_000 : 20_000;
const PRODUCERS = 64;
/** After the first answer: a busy machine may take longer than that to give it. */
const UNTIL_KILLED_MS = 3_000;
const MOST_SERVICES = 10_000;
/** By then what was kept on disk is in the database, ms. */
const DRAINED_MS = 60_000;
const PORTS = ['ROUTER', 'GATEWAY', 'OTLP_HTTP', 'OTLP_GRPC', 'CONSOLE', 'MEMORY', 'UPTIME'];

async function start(dir: string) {
  const ports = Object.fromEntries(PORTS.map((name) => [`HOLDFAST_${name}_PORT`, '0']));
  const child = spawn(process.execPath, [binary, 'start', '--data-dir', dir], {
    stdio: 'ignore',
    env: { ...process.env, ...ports },
  });
  while (readRuntimeFile(dir)?.pid !== child.pid) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    await sleep(10);
  }
  const http = readRuntimeFile(dir)?.surfaces.otlpHttp?.url ?? '';
  return { child, http, key: readFileSync(join(dir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim() };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

/** Memory of the whole product while it gets more than it can take. */
export const overload = (): Promise<Result[]> =>
  withFolder(async (dir) => {
    const { child, http, key } = await start(dir);
    const halves: [number, number] = [0, 0];
    const began = performance.now();
    const watch = setInterval(() => {
      const text = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      const mb = Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024;
      const half = performance.now() - began > OVERLOAD_MS / 2 ? 1 : 0;
      halves[half] = Math.max(halves[half], mb);
    }, 200);
    try {
      const { statuses } = await send({
        ...{ http, key, encoding: 'protobuf', size: 10_000, requests: Number.MAX_SAFE_INTEGER },
        ...{ atOnce: PRODUCERS, untilMs: OVERLOAD_MS },
      });
      const [first, second] = halves;
      const refused = (statuses[429] ?? 0) + (statuses[503] ?? 0);
      const told = `${statuses[200] ?? 0} taken, ${refused} refused, ${statuses[0] ?? 0} unanswered`;
      return [
        {
          what: `RSS, second half of ${OVERLOAD_MS / 1_000} s of overload (${told})`,
          ours: `${second.toFixed(0)} MB`,
          baseline: `${first.toFixed(0)} MB, first half`,
          ratio: second / first,
          target: '≤ 1.25',
          met: second / first <= 1.25 && (statuses[0] ?? 0) === 0,
        },
      ];
    } finally {
      clearInterval(watch);
      await end(child, 'SIGTERM');
    }
  });

/** What was acknowledged before kill -9, and is in the database after the next start. */
export const killed = (): Promise<Result[]> =>
  withFolder(async (dir) => {
    const size = 100;
    const first = await start(dir);
    let timer: NodeJS.Timeout | undefined;
    const { acknowledged } = await send(
      {
        ...{ http: first.http, key: first.key, encoding: 'json', size, requests: MOST_SERVICES },
        ...{ atOnce: 16, isNumbered: true },
      },
      () => {
        timer ??= setTimeout(() => first.child.kill('SIGKILL'), UNTIL_KILLED_MS);
      },
    );
    clearTimeout(timer);
    first.child.kill('SIGKILL');
    const { child } = await start(dir);
    try {
      const until = performance.now() + DRAINED_MS;
      let rows = await byService(dir);
      while (acknowledged.some((at) => (rows.get(`r${at}`) ?? 0) < size) && performance.now() < until) {
        await sleep(500);
        rows = await byService(dir);
      }
      const counts = acknowledged.map((at) => rows.get(`r${at}`) ?? 0);
      const lost = counts.reduce((sum, count) => sum + Math.max(0, size - count), 0);
      const twice = counts.reduce((sum, count) => sum + Math.max(0, count - size), 0);
      const baseline = `${(acknowledged.length * size).toLocaleString('en')} acknowledged`;
      const share = (count: number) => count / Math.max(1, acknowledged.length * size);
      const met = lost === 0 && acknowledged.length > 0;
      return [
        { what: 'spans lost by kill -9', ours: String(lost), baseline, ratio: share(lost), target: '0', met },
        { what: '  spans twice', ours: String(twice), baseline, ratio: share(twice) },
      ];
    } finally {
      await end(child, 'SIGTERM');
    }
  });

async function byService(dir: string): Promise<Map<string, number>> {
  const sql = 'SELECT ServiceName, count() FROM otel_traces GROUP BY ServiceName';
  const args = [binary, 'stack', 'query', sql, '--json', '--limit', String(MOST_SERVICES), '--data-dir', dir];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 });
  const { rows } = JSON.parse(stdout) as { rows: [string, string][] };
  return new Map(rows.map(([name, count]) => [name, Number(count)]));
}
