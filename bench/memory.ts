import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher } from 'undici';
import { postControl } from '../src/core/host/operations/control-client.ts';
import { readRuntimeFile } from '../src/core/host/runtime/runtime-file.ts';
import { syncPath } from '../src/core/kernel/durable-file.ts';
import { storePoints, vectorOf } from '../test/plugins/memory-store/rig.ts';
import { type Benchmark, fastest, median, type Result, withFolder } from './measure.ts';

const binary = new URL('../bin/holdfast.js', import.meta.url).pathname;
const source = (path: string) => JSON.stringify(new URL(`../src/${path}`, import.meta.url).pathname);
/** Numbers in a vector, as a small embedding model gives. */
const SIZE = 384;
const POINTS = { few: 1_000, some: 10_000, many: 100_000 } as const;
const SEARCHES = 200;
const SNAPSHOTS = '/collections/memory/snapshots';
const never = new AbortController().signal;

interface Store {
  readonly dir: string;
  readonly child: ChildProcess;
  /** @returns the `result` of the store's answer */
  ask(method: Dispatcher.HttpMethod, path: string, body?: object): Promise<any>;
  control(path: string, body?: object): Promise<any>;
  /** Of the whole process since its start, MB. */
  peak(): number;
}

async function withStore<T>(count: number, work: (store: Store) => Promise<T>): Promise<T> {
  return withFolder(async (dir) => {
    storePoints(dir, count, SIZE);
    const config = join(dir, 'plugins.config.ts');
    writeFileSync(
      config,
      `import { defineConfig } from ${source('index.ts')};
       import { memoryStore } from ${source('plugins/memory-store/index.ts')};
       import { memory } from ${source('plugins/memory/index.ts')};
       import { restore } from ${source('plugins/restore/index.ts')};
       export default defineConfig({ plugins: [memoryStore({ port: 0 }), memory(), restore()] });`,
    );
    const child = spawn(process.execPath, [binary, 'start', '--data-dir', dir, '--config', config], {
      stdio: 'ignore',
    });
    const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
    try {
      while (readRuntimeFile(dir)?.pid !== child.pid) {
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
        await sleep(10);
      }
      const origin = readRuntimeFile(dir)?.surfaces.memory?.url ?? '';
      return await work({
        dir,
        child,
        async ask(method, path, body) {
          const headers = { 'content-type': 'application/json' };
          const sent = body && { headers, body: JSON.stringify(body) };
          const answer = await agent.request({ origin, path, method, ...sent });
          const { result, status } = (await answer.body.json()) as any;
          if (status !== 'ok') throw new Error(`${method} ${path}: ${JSON.stringify(status)}`);
          return result;
        },
        async control(path, body = {}) {
          const answer = await postControl(dir, path, body, never);
          if (answer.status !== 200 && answer.status !== 202) throw new Error(JSON.stringify(answer.body));
          return answer.body;
        },
        peak: () =>
          Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1_024,
      });
    } finally {
      await agent.close();
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.kill('SIGTERM')) await ended;
    }
  });
}

/** Bytes a second, in MB. */
async function rate(bytes: number, work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return bytes / 1_000 / (performance.now() - began);
}

async function copies(store: Store): Promise<Result[]> {
  const { name, size } = await store.ask('POST', SNAPSHOTS);
  const file = join(store.dir, 'memory', 'snapshots', 'memory', name);
  const url = readRuntimeFile(store.dir)?.surfaces.memory?.url;
  const location = `${url}${SNAPSHOTS}/${name}`;
  const rates = await fastest(3, {
    plain: () =>
      rate(size, () => {
        const copy = join(store.dir, 'copy');
        copyFileSync(file, copy);
        syncPath(copy);
      }),
    snapshot: () => rate(size, () => store.ask('POST', SNAPSHOTS)),
    recover: () =>
      rate(size, () =>
        store.ask('PUT', '/collections/again/snapshots/recover', { location, priority: 'snapshot' }),
      ),
  });
  const line = (what: string, ours: number): Result => ({
    what: `${what}, ${(size / 1e6).toFixed(0)} MB`,
    ours: `${ours.toFixed(0)} MB/s`,
    baseline: `${rates.plain.toFixed(0)} MB/s copying the file`,
    ratio: ours / rates.plain,
  });
  return [
    line('snapshot: copied, hashed, synced', rates.snapshot),
    line('recover: fetched, checked, copied, synced', rates.recover),
  ];
}

async function searches(store: Store): Promise<Result> {
  const all = new Float32Array(POINTS.some * SIZE);
  for (let id = 1; id <= POINTS.some; id += 1) all.set(vectorOf(id, SIZE), (id - 1) * SIZE);
  const bare = (target: Float32Array) => {
    const scores = new Float32Array(POINTS.some);
    for (let point = 0; point < POINTS.some; point += 1) {
      let sum = 0;
      for (let at = 0; at < SIZE; at += 1) sum += (target[at] ?? 0) * (all[point * SIZE + at] ?? 0);
      scores[point] = sum;
    }
    return scores.sort().subarray(-10);
  };
  const times: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = 0; round < SEARCHES + 20; round += 1) {
    const target = vectorOf(round * 7 + 3, SIZE);
    const began = performance.now();
    const hits = await store.ask('POST', '/collections/memory/points/search', {
      vector: Array.from(target),
      limit: 10,
      with_payload: true,
    });
    const between = performance.now();
    bare(target);
    const ended = performance.now();
    if (hits[0]?.id !== round * 7 + 3) throw new Error('the search found another point');
    if (round < 20) continue; // the first fills the cache
    times.ours.push(between - began);
    times.bare.push(ended - between);
  }
  const [ours, loop] = [median(times.ours), median(times.bare)];
  return {
    what: `exact search of ${POINTS.some.toLocaleString('en')} points, p50`,
    ours: `${ours.toFixed(1)} ms`,
    baseline: `${loop.toFixed(1)} ms a loop over the vectors, sorted`,
    ratio: ours / loop,
    target: '< 2 × the loop',
    met: ours < 2 * loop,
  };
}

interface Drill {
  readonly ms: number;
  readonly copyMs: number;
  readonly size: number;
  readonly peak: number;
  /** Before anything was asked for. */
  readonly idle: number;
}

async function drill(store: Store): Promise<Drill> {
  const idle = store.peak();
  await store.control('/memory/backup/seed');
  const { name } = await store.control('/memory/backup/snapshot');
  const file = join(store.dir, 'memory', 'snapshots', 'memory', name);
  const began = performance.now();
  copyFileSync(file, join(store.dir, 'copy'));
  syncPath(join(store.dir, 'copy'));
  const copyMs = performance.now() - began;
  const { id } = await store.control('/restore/drill', { path: 'a', snapshot: name });
  for (;;) {
    const { results } = await store.control('/restore/status');
    const ended = results.find((one: any) => one.id === id);
    if (ended && ended.outcome !== 'completed') throw new Error(JSON.stringify(ended.failure));
    if (ended) {
      return { ms: ended.endedAt - ended.at, copyMs, size: statSync(file).size, peak: store.peak(), idle };
    }
    await sleep(50);
  }
}

function drillLines(few: Drill, many: Drill): Result[] {
  const time = (points: number, { ms, copyMs, size }: Drill): Result => ({
    what: `restore drill, path A, ${points.toLocaleString('en')} points`,
    ours: `${(ms / 1_000).toFixed(1)} s`,
    baseline: `${(copyMs / 1_000).toFixed(2)} s copying its ${(size / 1e6).toFixed(0)} MB`,
    ratio: ms / copyMs,
    ...(points === POINTS.few && { target: '< 10 s', met: ms < 10_000 }),
  });
  return [
    time(POINTS.few, few),
    time(POINTS.many, many),
    {
      what: `peak memory of snapshot and drill, ${POINTS.many.toLocaleString('en')} points`,
      ours: `${many.peak.toFixed(0)} MB`,
      baseline: `${few.peak.toFixed(0)} MB with ${POINTS.few.toLocaleString('en')}; idle ${few.idle.toFixed(0)}`,
      ratio: many.peak / few.peak,
      target: 'grows by less than half of the snapshot',
      met: many.peak - few.peak < (many.size - few.size) / 1e6 / 2,
    },
  ];
}

export const memoryBenchmark: Benchmark = {
  name: 'memory',
  summary: `the embedded memory store: points of ${SIZE} numbers, snapshots, recoveries, searches and drills`,
  async run() {
    const small = await withStore(POINTS.some, async (store) => [
      ...(await copies(store)),
      await searches(store),
    ]);
    const few = await withStore(POINTS.few, drill);
    const many = await withStore(POINTS.many, drill);
    return [...small, ...drillLines(few, many)];
  },
};
