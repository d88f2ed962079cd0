import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Scope } from '../../test/support/scope.ts';
import { until } from '../../test/support/until.ts';
import { Program } from '../gateway/program.ts';
import { median, quantile, type Result } from '../measure.ts';
import { BenchHost, type ClusterWish } from './host.ts';
import { overServers } from './mirror.ts';

export interface RevocationWish {
  readonly dir: string;
  readonly cluster: ClusterWish;
  /** Copies of each stream. */
  readonly replicas: 1 | 3;
  readonly times: number;
}

const BUDGET_MS = 1_000;
const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
});

/** Revokes keys at one host while another is called with them without a pause. */
export async function revocationRow(
  scope: Scope,
  { dir, cluster, replicas, times }: RevocationWish,
): Promise<Result> {
  const upstream = Program.start('upstream', 1);
  scope.teardown(() => upstream.stop());
  const { url } = await upstream.said<{ url: string }>();
  const start = (name: string) =>
    BenchHost.start(scope, { name, dir: join(dir, cluster.name), cluster, upstreams: { bench: url } });
  const [one, two] = [await start('one'), await start('two')];
  const there: number[] = [];
  const here: number[] = [];
  for (let turn = 0; turn < times; turn += 1) {
    const key = `sk-${randomBytes(16).toString('hex')}`;
    await one.control('/gateway/keys/mint', { key, object_permission: { mcp_servers: ['bench'] } });
    await until('the other host knows the key', async () => (await call(two, key)) === 200);
    await until('its own host knows the key', async () => (await call(one, key)) === 200);
    const from = performance.now();
    const [, elsewhere, own] = await Promise.all([
      one.control('/gateway/keys/revoke', { keys: [key] }),
      refused(two, key),
      refused(one, key),
    ]);
    there.push(elsewhere - from);
    here.push(own - from);
  }
  const p99 = quantile(there, 0.99);
  return {
    what: `a key revoked at one host, until another refuses it${overServers(replicas)}, p99 of ${times} (p50 ${median(there).toFixed(0)} ms)`,
    ours: `${p99.toFixed(0)} ms`,
    baseline: `${quantile(here, 0.99).toFixed(0)} ms until the host itself does`,
    ratio: p99 / quantile(here, 0.99),
    target: '< 1 s',
    met: p99 < BUDGET_MS,
  };
}

/** @returns when the first call was refused */
async function refused(host: BenchHost, key: string): Promise<number> {
  let at = 0;
  await until(
    `${host.name} refuses the key`,
    async () => {
      const status = await call(host, key);
      at = performance.now();
      if (status !== 200 && status !== 401 && status !== 403) throw new Error(`${host.name}: ${status}`);
      return status !== 200;
    },
    1,
  );
  return at;
}

async function call(host: BenchHost, key: string): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'x-gateway-api-key': `Bearer ${key}`,
  };
  const answer = await fetch(host.mcpUrl('bench'), { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.status;
}
