import { setTimeout as passing } from 'node:timers/promises';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import type { FaultyCluster } from './faulty-cluster.ts';

/** What is done to a host, or to NATS. */
export type FaultKind = keyof typeof faults;

/** One fault of a schedule. */
export interface Fault {
  readonly kind: FaultKind;
  /** Whom it meets: the host that holds the pump at that moment, or the first or second of the others. */
  readonly whom: 'holder' | 'first' | 'second';
  /** Begins so long after the faults of its round may begin, milliseconds. */
  readonly afterMs: number;
  /** Until it is healed, milliseconds. */
  readonly forMs: number;
}

type Inject = (cluster: FaultyCluster, host: string, forMs: number) => Promise<void>;

/** Each begins a fault, waits, and heals it. */
const faults = {
  /** A zombie: it goes on later, and believes what it believed. */
  freeze: async ({ hosts }, host, forMs) => {
    if (!hosts.isUp(host)) return;
    const { child } = hosts.of(host);
    child.kill('SIGSTOP');
    await passing(forMs);
    child.kill('SIGCONT');
  },
  kill: async (cluster, host, forMs) => {
    await cluster.endHost(host, 'SIGKILL');
    await passing(forMs);
    await cluster.startHost(host);
  },
  /** A clean stop. */
  stop: async (cluster, host, forMs) => {
    await cluster.endHost(host, 'SIGTERM');
    await passing(forMs);
    await cluster.startHost(host);
  },
  cut: (cluster, host, forMs) => cut(cluster, host, forMs, 'both'),
  /** Nothing of it reaches NATS, and it hears everything. */
  'cut-up': (cluster, host, forMs) => cut(cluster, host, forMs, 'up'),
  /** What it says arrives, and it hears nothing. */
  'cut-down': (cluster, host, forMs) => cut(cluster, host, forMs, 'down'),
  slow: async (cluster, host, forMs) => {
    const links = cluster.linksOf(host);
    for (const link of links) link.set({ delayMs: 100, loss: 0.05 });
    await passing(forMs);
    for (const link of links) link.heal();
  },
  /** Its connections are reset, and new ones refused. */
  refuse: async (cluster, host, forMs) => {
    const links = cluster.linksOf(host);
    for (const link of links) link.refuse();
    await passing(forMs);
    for (const link of links) link.heal();
  },
  'kill-server': async (cluster, host, forMs) => {
    const server = await cluster.leaderOf(await cluster.logOf(host));
    await cluster.nats.kill(server);
    await passing(forMs);
    await cluster.nats.restart(server);
  },
  'kill-ledger-server': async (cluster, _host, forMs) => {
    const server = await cluster.leaderOf(cluster.ledger);
    await cluster.nats.kill(server);
    await passing(forMs);
    await cluster.nats.restart(server);
  },
  'freeze-server': async (cluster, _host, forMs) => {
    const server = await cluster.leaderOf(cluster.ledger);
    cluster.nats.stop(server);
    await passing(forMs);
    cluster.nats.cont(server);
  },
  'delete-log': async (cluster, host, forMs) => {
    await cluster.deleteStream(await cluster.logOf(host));
    await passing(forMs);
  },
  'delete-ledger': async (cluster, _host, forMs) => {
    await cluster.deleteStream(cluster.ledger);
    await passing(forMs);
  },
  /** An operator moves the pump while something else goes wrong: it may be refused. */
  move: async ({ hosts }, host, forMs) => {
    if (hosts.isUp(host)) {
      const body = { singleton: 'pump', by: 'a test' };
      await postControl(hosts.dataDir(host), '/cluster/move', body, AbortSignal.timeout(forMs)).catch(
        () => {},
      );
    }
  },
} satisfies Record<string, Inject>;

export const faultKinds = Object.keys(faults) as FaultKind[];

async function cut(
  cluster: FaultyCluster,
  host: string,
  forMs: number,
  direction: 'both' | 'up' | 'down',
): Promise<void> {
  const links = cluster.linksOf(host);
  for (const link of links) link.cut(direction);
  await passing(forMs);
  for (const link of links) link.heal();
}

/** Injects the faults of a round, which may overlap, and returns when all are healed. */
export async function injectFaults(cluster: FaultyCluster, round: readonly Fault[]): Promise<void> {
  await Promise.all(
    round.map(async ({ kind, whom, afterMs, forMs }) => {
      await passing(afterMs);
      await faults[kind](cluster, cluster.hostOf(whom), forMs);
    }),
  );
}
