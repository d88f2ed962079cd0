import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fastify from 'fastify';
import { Pool } from 'undici';
import { z } from 'zod';
import { alertRaised } from '../src/core/contracts/alerts.ts';
import { ColumnarDatabaseToken } from '../src/core/contracts/columnar-database.ts';
import { resolveConfig } from '../src/core/host/config/resolve.ts';
import { createLogger } from '../src/core/host/logging/logger.ts';
import { type ConfiguredPlugin, definePlugin } from '../src/core/host/plugin/definition.ts';
import { createRuntime } from '../src/core/host/runtime/runtime.ts';
import { alerts } from '../src/plugins/alerts/index.ts';
import { uptimeMonitor } from '../src/plugins/uptime-monitor/index.ts';
import { openColumnar } from '../test/support/columnar.ts';
import type { Scope } from '../test/support/scope.ts';
import { tempDir } from '../test/support/temp.ts';
import { type Benchmark, perSecond, quantile, type Result, withScope } from './measure.ts';

const MONITORS = 10_000;
const RULES = 1_000;
const PUSHES = 5_000;
const AT_ONCE = 64;
const MINUTE_MS = 60_000;
/** One caller stands for all senders here. */
const UNBOUNDED = { burst: 1_000_000, perSecond: 100_000 };
/** Of a minute, what is looked at: a pace is the same in a part of it. */
const PART_MS = 20_000;
/** The first looks come soon after the start, all of them. */
const RULES_SETTLE_MS = 8_000;

async function start(scope: Scope, entries: readonly unknown[], dataDir = tempDir(scope)) {
  const { plugins } = resolveConfig({ plugins: entries as ConfiguredPlugin[] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  scope.teardown(() => runtime.stop('the benchmark is over'));
  await runtime.start();
  return { runtime, dataDir };
}

/** Processor time of this process, milliseconds. */
function cpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Asks paths, some at once. @returns requests a second, and of processor time, whoever asks included */
async function flood(url: string, pathOf: (index: number) => string) {
  const pool = new Pool(url, { connections: AT_ONCE });
  let next = 0;
  const worker = async () => {
    while (next < PUSHES) {
      const { statusCode, body } = await pool.request({ method: 'GET', path: pathOf(next++) });
      await body.dump();
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
    }
  };
  const [began, spent] = [performance.now(), cpu()];
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const rates = {
    wall: PUSHES / ((performance.now() - began) / 1_000),
    cpu: (cpu() - spent) / PUSHES,
  };
  await pool.close();
  return rates;
}

/** Tokens of monitors, as an operator puts them there. */
function tokensOf(dataDir: string, monitors: readonly { readonly name: string }[]): string[] {
  const folder = join(dataDir, 'secrets/push');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return monitors.map(({ name }) => {
    const token = randomBytes(24).toString('base64url');
    writeFileSync(join(folder, name), `${token}\n`, { mode: 0o600 });
    return token;
  });
}

async function pushes(): Promise<readonly Result[]> {
  return withScope(async (scope) => {
    const monitors = Array.from({ length: MONITORS }, (_, index) => ({
      name: `m${index}`,
      slug: 'all',
      interval: 60,
      retries: 1,
    }));
    const began = performance.now();
    const first = await start(scope, [uptimeMonitor({ port: 0, monitors })]);
    const startMs = performance.now() - began;
    await first.runtime.stop('its start was measured');

    // Making 10,000 tokens durable is the disk's work, and none of a push's: here they are there already.
    const dataDir = tempDir(scope);
    const tokens = tokensOf(dataDir, monitors);
    const { runtime } = await start(
      scope,
      [uptimeMonitor({ port: 0, monitors, writeBudget: UNBOUNDED })],
      dataDir,
    );
    const url = runtime.surfaces.uptime?.url as string;
    const bare = fastify();
    scope.teardown(() => bare.close());
    bare.all('/api/push/:token', async () => ({ ok: true }));
    const plain = await bare.listen({ host: '127.0.0.1', port: 0 });
    const path = (index: number) => `/api/push/${tokens[index % MONITORS]}?status=up&msg=OK&ping=3`;
    await flood(plain, path);
    // Each monitor's first beat is a change of state, and made durable.
    await flood(url, path);
    await flood(url, (index) => path(index + PUSHES));
    const rounds: { wall: number; cpu: number }[][] = [];
    for (let round = 0; round < 2; round += 1)
      rounds.push([await flood(url, path), await flood(plain, path)]);
    const best = (which: 0 | 1, of: 'wall' | 'cpu') =>
      of === 'wall'
        ? Math.max(...rounds.map((each) => each[which]?.wall ?? 0))
        : Math.min(...rounds.map((each) => each[which]?.cpu ?? 0));

    // The pace at which each of them pushes once a minute.
    const count = (MONITORS * PART_MS) / MINUTE_MS;
    const pool = new Pool(url, { connections: 16 });
    const took: number[] = [];
    const [spent, from] = [cpu(), performance.now()];
    const pending = new Set<Promise<void>>();
    for (let index = 0; index < count; index += 1) {
      const wait = from + (index * PART_MS) / count - performance.now();
      if (wait > 1) await sleep(wait);
      const asked = performance.now();
      const one = pool
        .request({ method: 'GET', path: path(index) })
        .then(({ body }) => body.dump())
        .then(() => void took.push(performance.now() - asked));
      pending.add(one);
      void one.finally(() => pending.delete(one));
    }
    await Promise.all(pending);
    const share = ((cpu() - spent) / PART_MS) * 100;
    await pool.close();
    const rss = process.memoryUsage.rss() / 2 ** 20;
    const [mine, theirs] = [best(0, 'wall'), best(1, 'wall')];
    const [cost, least] = [best(0, 'cpu'), best(1, 'cpu')];
    return [
      {
        what: `start with ${MONITORS.toLocaleString('en')} monitors, none made yet`,
        ours: `${(startMs / 1_000).toFixed(1)} s`,
        baseline: 'an empty data folder',
        ratio: startMs / 10_000,
        target: '≤ 10 s',
        met: startMs <= 10_000,
      },
      {
        what: 'pushes, 64 at once',
        ours: perSecond(mine),
        baseline: `${perSecond(theirs)} by a bare fastify handler`,
        ratio: mine / theirs,
        target: '≥ 0.60',
        met: mine / theirs >= 0.6,
      },
      {
        what: '  processor time of a push, its sender included',
        ours: `${(cost * 1_000).toFixed(0)} µs`,
        baseline: `${(least * 1_000).toFixed(0)} µs by a bare fastify handler`,
        ratio: least / cost,
      },
      {
        what: '10,000 monitors, one push a minute each: p99',
        ours: `${quantile(took, 0.99).toFixed(1)} ms`,
        baseline: `${quantile(took, 0.5).toFixed(1)} ms p50; ${rss.toFixed(0)} MiB resident, senders included`,
        ratio: quantile(took, 0.99) / quantile(took, 0.5),
      },
      {
        what: '  processor, senders included',
        ours: `${share.toFixed(1)} % of a core`,
        baseline: 'one core',
        ratio: share / 100,
      },
    ];
  });
}

/** How much later than due a missed beat is told. */
async function lateness(): Promise<readonly Result[]> {
  return withScope(async (scope) => {
    const COUNT = 200;
    const monitors = Array.from({ length: COUNT }, (_, index) => ({ name: `m${index}`, interval: 2 }));
    const { runtime, dataDir } = await start(scope, [
      uptimeMonitor({ port: 0, monitors, writeBudget: UNBOUNDED }),
    ]);
    const { bus } = runtime.services;
    const url = runtime.surfaces.uptime?.url as string;
    const beaten = new Map<string, number>();
    const late: number[] = [];
    bus.subscribe(alertRaised, 'bench', ({ payload: { labels } }) => {
      const at = beaten.get(labels.monitor ?? '');
      if (at === undefined || labels.state !== 'firing') return;
      beaten.delete(labels.monitor ?? '');
      // Interval and last call: when it is due by its settings.
      late.push(Date.now() - at - 2_500);
    });
    for (const { name } of monitors) {
      const token = readFileSync(join(dataDir, 'secrets/push', name), 'utf8').trim();
      beaten.set(name, Date.now());
      await (await fetch(`${url}/api/push/${token}`)).text();
    }
    for (let left = 100; left > 0 && late.length < COUNT; left -= 1) await sleep(100);
    const worst = Math.max(...late);
    return [
      {
        what: `a missed beat of ${late.length} of ${COUNT}: told late by at most`,
        ours: `${worst.toFixed(0)} ms`,
        baseline: `${quantile(late, 0.5).toFixed(0)} ms p50`,
        ratio: worst / 1_000,
        target: '< 1 s',
        met: late.length === COUNT && worst < 1_000,
      },
    ];
  });
}

async function rules(): Promise<readonly Result[]> {
  const rig = await openColumnar();
  try {
    return await withScope(async (scope) => {
      const now = Date.now();
      const rows = Array.from({ length: 10_000 }, (_, index) => ({
        TimeUnix: new Date(now - (index % 600) * 1_000).toISOString(),
        MetricName: `metric.${index % 100}`,
        ServiceName: 'shop',
        Value: index % 7,
        Attributes: { source: `s${index % 10}` },
        ResourceAttributes: { 'host.name': 'host-1' },
      }));
      await rig.database.insert('otel_metrics_gauge', rows);
      let looks = 0;
      const counted = new Proxy(rig.database, {
        get(target, name) {
          if (name === 'query') looks += 1;
          const value = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      const store = definePlugin({
        name: 'bench-store',
        options: z.strictObject({}),
        provides: [ColumnarDatabaseToken],
        register: (context) => context.provide(ColumnarDatabaseToken, () => counted),
      });
      const listed = Array.from({ length: RULES }, (_, index) => ({
        name: `rule-${index}`,
        title: `Rule ${index}`,
        measure: {
          table: 'gauge' as const,
          metric: `metric.${index % 100}`,
          where: { source: `s${index % 10}` },
        },
        above: 1_000,
        window: '10m',
        every: '1m',
        onNoData: 'ok' as const,
      }));
      await start(scope, [store(), alerts({ rules: listed, routes: [], receivers: {} })]);
      await sleep(RULES_SETTLE_MS);
      const [spent, before] = [cpu(), looks];
      await sleep(PART_MS);
      const share = ((cpu() - spent) / PART_MS) * 100;
      const seen = looks - before;
      const began = performance.now();
      const alone = cpu();
      for (let index = 0; index < 200; index += 1) {
        await rig.database.query(
          'SELECT count() AS samples, argMax(Value, TimeUnix) AS value FROM otel_metrics_gauge WHERE MetricName = {metric:String}',
          { metric: `metric.${index % 100}` },
        );
      }
      const bareMs = (cpu() - alone) / 200;
      return [
        {
          what: `${RULES.toLocaleString('en')} rules, each looked at once a minute (${seen} looks in ${PART_MS / 1_000} s)`,
          ours: `${share.toFixed(1)} % of a core`,
          baseline: `${(((bareMs * RULES) / MINUTE_MS) * 100).toFixed(1)} % for the bare queries (${((performance.now() - began) / 200).toFixed(1)} ms each)`,
          ratio: share / (((bareMs * RULES) / MINUTE_MS) * 100),
        },
      ];
    });
  } finally {
    await rig.close();
  }
}

export const alertsBenchmark: Benchmark = {
  name: 'alerts',
  summary: 'rules, push monitors, and how soon a missed beat is told',
  async run() {
    return [...(await pushes()), ...(await lateness()), ...(await rules())];
  },
};
