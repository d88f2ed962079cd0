import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startNats } from '../test/support/nats.ts';
import { tempDir } from '../test/support/temp.ts';
import { callRows } from './cluster/calls.ts';
import type { ClusterWish } from './cluster/host.ts';
import { mirrorRows } from './cluster/mirror.ts';
import { revocationRow } from './cluster/revocation.ts';
import { takeoverRows } from './cluster/takeover.ts';
import { withoutRows } from './cluster/without.ts';
import { type Benchmark, type Result, withScope } from './measure.ts';

/** How long each part goes on. */
export interface ClusterPlan {
  readonly starts: number;
  readonly warmTurns: number;
  readonly rounds: number;
  readonly pairedRounds: number;
  readonly revocations: number;
  readonly records: number;
  readonly evenMs: number;
  readonly takeovers: readonly { readonly leaseMs: number; readonly rounds: number }[];
  readonly settleMs: number;
  readonly idleMs: number;
}

const plan: ClusterPlan = {
  starts: 5,
  warmTurns: 6,
  rounds: 4,
  pairedRounds: 12,
  revocations: 30,
  records: 200_000,
  evenMs: 10_000,
  takeovers: [
    { leaseMs: 5_000, rounds: 5 },
    { leaseMs: 15_000, rounds: 2 },
  ],
  // After a start tables are looked at, rules look for the first time, and what the start left is cleared away.
  settleMs: 15_000,
  idleMs: 20_000,
};

/** Each stream of a host reserves a gigabyte of it. */
const STORE_BYTES = 64 * 2 ** 30;

/** Everything over one server of NATS on loopback, some of it also over three; each part is over when the next one begins. */
export async function measureCluster(wish: ClusterPlan): Promise<Result[]> {
  return withScope(async (scope) => {
    const dir = tempDir(scope);
    const nats = await startNats(scope, { storeBytes: STORE_BYTES });
    const servers = nats.url();
    const keyFile = join(dir, 'cluster-key');
    writeFileSync(keyFile, randomBytes(64), { mode: 0o600 });
    const cluster = (name: string, leaseMs = 15_000): ClusterWish & { readonly leaseMs: number } => ({
      ...{ name, servers, keyFile, leaseMs },
    });
    const { starts, warmTurns, rounds, pairedRounds, records, evenMs, settleMs, idleMs } = wish;
    const natsPid = nats.pid();
    const calls = await callRows({
      ...{ dir, cluster: cluster('calls'), natsPid },
      ...{ starts, warmTurns, rounds, pairedRounds },
    });
    const mirror = await withScope((part) =>
      mirrorRows(part, { dir, servers, replicas: 1, records, evenMs }),
    );
    const times = wish.revocations;
    const revocation = await withScope((part) =>
      revocationRow(part, { dir, cluster: cluster('revocation'), replicas: 1, times }),
    );
    const overThree = await withScope(async (part) => {
      const three = (await startNats(part, { servers: 3, storeBytes: STORE_BYTES })).urls().join(',');
      const mirrored = await mirrorRows(part, { dir, servers: three, replicas: 3, records, evenMs });
      const wide = { ...cluster('over-three'), servers: three };
      return [...mirrored, await revocationRow(part, { dir, cluster: wide, replicas: 3, times })];
    });
    // These wait most of the time, so they do so together.
    const [without, ...takeovers] = await withScope((part) =>
      Promise.all([
        withoutRows(part, { dir, cluster: cluster('idle'), settleMs, idleMs }),
        ...wish.takeovers.map(({ leaseMs, rounds }) =>
          takeoverRows(part, { dir, cluster: cluster(`lease-${leaseMs}`, leaseMs), rounds }),
        ),
      ]),
    );
    return [...calls, ...takeovers.flat(), ...mirror, revocation, ...overThree, ...without];
  });
}

export const clusterBenchmark: Benchmark = {
  name: 'cluster',
  summary:
    'hosts of a cluster as processes of their own, over one server of NATS on the same machine, or three, beside the same without a cluster, taking turns',
  run: () => measureCluster(plan),
};
