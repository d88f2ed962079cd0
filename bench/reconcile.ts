import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { routerChannels } from '../src/core/adapters/router.ts';
import { resolveConfig } from '../src/core/config/index.ts';
import { createLogger } from '../src/core/logging/index.ts';
import { createRuntime } from '../src/core/runtime/index.ts';
import { consolePlugin } from '../src/plugins/console/index.ts';
import { reconciler } from '../src/plugins/reconciler/index.ts';
import { router } from '../src/plugins/router/index.ts';
import { type Benchmark, quantile, withFolder } from './measure.ts';

const SAVES = 500;
const SETTLE_MS = 25;
/** Commits that follow one another between event and save: heard, settled, read, asked, stored. */
const COMMITS = 5;

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

const latency = (values: readonly number[]): Latency => ({
  p50: quantile(values, 0.5),
  p99: quantile(values, 0.99),
});

/** From the channel's event of an app save that dropped an address to the save that holds it again. */
async function heal(dir: string): Promise<Latency> {
  const { plugins } = resolveConfig(
    { plugins: [router({ port: 0 }), reconciler(), consolePlugin({ port: 0 })] },
    { env: {} },
  );
  const runtime = createRuntime({ plugins, dataDir: dir, logger: createLogger({ level: 'silent' }) });
  await runtime.start();
  const url = `${runtime.surfaces.router?.url}/v1/config`;
  const took: number[] = [];
  let dropped = 0;
  let healed = () => {};
  runtime.services.bus.subscribe(routerChannels.changeApplied, 'bench', () => {
    if (dropped === 0) {
      dropped = performance.now();
      return;
    }
    took.push(performance.now() - dropped);
    healed();
  });
  await sleep(2_000); // the legs look a second time after the start
  for (let save = 0; save < SAVES; save += 1) {
    const config = (await (await fetch(`${url}/active`)).json()) as {
      interface: { vlan: Record<string, { ipv6?: unknown }> };
    };
    delete config.interface.vlan['eth1.10']?.ipv6;
    dropped = 0;
    const again = new Promise<void>((resolve) => {
      healed = resolve;
    });
    const headers = { 'content-type': 'application/json' };
    await fetch(`${url}/set`, { method: 'POST', headers, body: JSON.stringify(config) });
    await again;
    await sleep(5);
  }
  await runtime.stop('bench');
  return latency(took);
}

/** What the disk and the settle time alone take. */
async function floor(dir: string): Promise<Latency> {
  const db = new DatabaseSync(`${dir}/floor.db`);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (body TEXT)');
  const insert = db.prepare('INSERT INTO t VALUES (?)');
  const took: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    const started = performance.now();
    await sleep(SETTLE_MS);
    for (let commit = 0; commit < COMMITS; commit += 1) insert.run('x'.repeat(500));
    took.push(performance.now() - started);
  }
  db.close();
  return latency(took);
}

export const reconcileBenchmark: Benchmark = {
  name: 'reconcile',
  summary: `an app save drops an address: from the event to the save that holds it again, ${SAVES} times`,
  run: () =>
    withFolder(async (dir) => {
      const before = await floor(dir);
      const ours = await heal(dir);
      const line = (at: keyof Latency) => ({
        what: `healed, ${at}`,
        ours: `${ours[at].toFixed(1)} ms`,
        baseline: `${before[at].toFixed(1)} ms settle and ${COMMITS} bare commits`,
        ratio: ours[at] / before[at],
      });
      return [line('p50'), { ...line('p99'), target: '< 100 ms', met: ours.p99 < 100 }];
    }),
};
