import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from '../../test/support/scope.ts';
import type { Result } from '../measure.ts';
import { BenchHost, type ClusterWish } from './host.ts';

export interface WithoutWish {
  readonly dir: string;
  readonly cluster: ClusterWish;
  readonly settleMs: number;
  readonly idleMs: number;
}

const root = new URL('../../', import.meta.url);
const hook = new URL('list-modules.ts', import.meta.url).href;
/** As measured: what two idle processes of the same program differ by. Percent of a processor. */
const SAME = 0.1;

const ANY_PORT = Object.fromEntries(
  ['ROUTER', 'GATEWAY', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME', 'MEMORY', 'CONSOLE'].map((surface) => [
    `HOLDFAST_${surface}_PORT`,
    '0',
  ]),
);
/** A server that is not there: without the embedded engine, and with nothing in its place. */
const NO_ENGINE = { HOLDFAST_CLICKHOUSE_URL: 'http://127.0.0.1:9' };

/**
 * The configuration as it is shipped, without a server of NATS and with one, and the same without the cluster in its list;
 * all three do nothing at the same time.
 */
export async function withoutRows(scope: Scope, wish: WithoutWish): Promise<Result[]> {
  const dir = join(wish.dir, 'without');
  const shipped = readFileSync(new URL('plugins.config.ts', root), 'utf8');
  const unlisted = join(wish.dir, 'unlisted.config.ts');
  const lines = shipped.split('\n').filter((line) => !line.includes('plugins/cluster/'));
  writeFileSync(unlisted, lines.join('\n').replaceAll("from './", `from '${root.pathname}`));

  const file = (name: string) => join(wish.dir, `${name}.modules`);
  const start = (name: string, config: string, cluster?: ClusterWish) =>
    BenchHost.start(scope, {
      ...{ name, dir, config, cluster },
      env: { ...ANY_PORT, ...NO_ENGINE, HOLDFAST_BENCH_MODULES: file(name) },
      nodeOptions: ['--import', hook],
    });
  const config = new URL('plugins.config.ts', root).pathname;
  const alone = await start('alone', config);
  const bare = await start('bare', unlisted);
  const host = await start('host', config, wish.cluster);
  const all = [alone, bare, host];
  await sleep(wish.settleMs);
  const before = all.map((one) => one.cpuMs());
  await sleep(wish.idleMs);
  const [ours = 0, baseline = 0, joined = 0] = all.map(
    (one, index) => ((one.cpuMs() - (before[index] ?? 0)) / wish.idleMs) * 100,
  );
  for (const one of all) await one.end('SIGTERM');
  const [loaded, needed] = [modulesOf(file('alone')), modulesOf(file('host'))];
  const share = (percent: number) => `${percent.toFixed(2)} % of a core`;
  return [
    {
      what: 'modules of the cluster and of NATS without a server of NATS, as shipped',
      ours: String(loaded.length),
      baseline: `${needed.length} with one`,
      ratio: loaded.length / needed.length,
      target: '0',
      met: loaded.length === 0 && needed.length > 0,
    },
    {
      what: 'processor, idle, without a server of NATS, as shipped',
      ours: share(ours),
      baseline: `${share(baseline)} without the plugin, ${share(joined)} as a host of a cluster`,
      ratio: ours / Math.max(baseline, 0.01),
      target: `< ${SAME} % more`,
      met: ours - baseline < SAME,
    },
  ];
}

function modulesOf(file: string): string[] {
  const loaded = new Set(readFileSync(file, 'utf8').split('\n'));
  return [...loaded].filter((url) => /\/plugins\/cluster\/|\/machines\/cluster\/|@nats-io/.test(url));
}
