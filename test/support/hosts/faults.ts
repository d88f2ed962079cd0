import { rmSync } from 'node:fs';
import { setTimeout as passing } from 'node:timers/promises';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { PATHS } from '../../../src/plugins/cluster/operate/view.ts';
import type { NatsServers } from '../nats.ts';
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
  /** Its machine burns down. What NATS holds of its log becomes that of another machine, which goes on as this host. */
  burn: async (cluster, host, forMs) => {
    if (!cluster.hosts.isUp(host)) return;
    await cluster.isMirrored(host);
    await cluster.endHost(host, 'SIGKILL');
    rmSync(cluster.hosts.dataDir(host), { recursive: true });
    await passing(forMs);
    await cluster.startHost(host, ['--adopt', host]);
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
  /** The server that leads the log of a host. */
  'kill-server': async (cluster, host, forMs) => killLeader(cluster, await cluster.logOf(host), forMs),
  'kill-ledger-server': (cluster, _, forMs) => killLeader(cluster, cluster.stream('LEDGER'), forMs),
  'kill-shared-server': (cluster, _, forMs) => killLeader(cluster, cluster.stream('SHARED'), forMs),
  /** NATS is away for all. */
  'kill-nats': async ({ nats }, _host, forMs) => {
    await everyServer(nats, (server) => nats.kill(server));
    await passing(forMs);
    await everyServer(nats, (server) => nats.restart(server));
  },
  'freeze-server': async (cluster, _host, forMs) => {
    const server = await cluster.leaderOf(cluster.stream('LEDGER'));
    cluster.nats.stop(server);
    await passing(forMs);
    cluster.nats.cont(server);
  },
  /** The leader of the ledger does not reach the other servers, nor they it; hosts reach all of them. */
  split: async (cluster, _host, forMs) => {
    const server = await cluster.leaderOf(cluster.stream('LEDGER'));
    cluster.nats.split(server);
    await passing(forMs);
    cluster.nats.rejoin(server);
  },
  /** A host and one server are on their own: neither reaches the others, nor they them. */
  apart: async (cluster, host, forMs) => {
    const server = await cluster.leaderOf(cluster.stream('SHARED'));
    const links = cluster.linksOf(host).filter((_, to) => to !== server);
    cluster.nats.split(server);
    for (const link of links) link.refuse();
    await passing(forMs);
    cluster.nats.rejoin(server);
    for (const link of links) link.heal();
  },
  /** The leader of a host's log writes nothing any more; NATS goes on with such a server when it is started again. */
  'full-disk': async (cluster, host, forMs) => {
    const server = await cluster.leaderOf(await cluster.logOf(host));
    const disk = cluster.nats.diskOf(server);
    disk.fill();
    await passing(forMs);
    disk.free();
    await cluster.nats.restart(server);
  },
  /** All servers come back with what they had stored before the fault. */
  'set-back': async ({ nats }, _host, forMs) => {
    await everyServer(nats, (server) => nats.kill(server));
    const stores = Array.from({ length: nats.count }, (_, server) => nats.keepStore(server));
    await everyServer(nats, (server) => nats.restart(server));
    await passing(forMs);
    await everyServer(nats, (server) => nats.kill(server));
    for (const [server, store] of stores.entries()) nats.restoreStore(server, store);
    await everyServer(nats, (server) => nats.restart(server));
  },
  'delete-log': async (cluster, host) => cluster.deleteStream(await cluster.logOf(host)),
  'delete-ledger': (cluster) => cluster.deleteStream(cluster.stream('LEDGER')),
  'delete-shared': (cluster) => cluster.deleteStream(cluster.stream('SHARED')),
  'delete-proofs': (cluster) => cluster.deleteStream(cluster.stream('QUORUM_1')),
  /** The newest message of each stream comes a second time, and is taken. */
  repeat: async (cluster, host) => {
    const shared = (['LEDGER', 'SHARED', 'QUORUM_1'] as const).map((name) => cluster.stream(name));
    for (const stream of [...shared, await cluster.logOf(host)]) await cluster.repeat(stream).catch(() => {});
  },
  /** An operator moves the pump while something else goes wrong: it may be refused. */
  move: (cluster, host, forMs) => operate(cluster, host, PATHS.move, { singleton: 'pump' }, forMs),
  /** It gives away what it holds, and takes nothing until it may again. */
  drain: async (cluster, host, forMs) => {
    await operate(cluster, host, PATHS.drain, {}, forMs);
    await passing(forMs);
    await operate(cluster, host, PATHS.drain, { undo: true }, 10_000);
  },
  /** Somebody revokes a key while it is used, there or where it can be done. */
  revoke: (cluster, host) => cluster.revoke(host),
} satisfies Record<string, Inject>;

export const faultKinds = Object.keys(faults) as FaultKind[];

/** Faults beside which nothing else happens: with a host's disk and its stream both copies of its log would be gone. */
export const alone: readonly FaultKind[] = ['burn'];

/** Faults that start servers of NATS again. */
export const ofServers: readonly FaultKind[] = [
  'kill-server',
  'kill-ledger-server',
  'kill-shared-server',
  'kill-nats',
  'freeze-server',
  'full-disk',
  'set-back',
];

/** Faults of several servers: a single one is lost as a whole. */
const ofSeveral: readonly FaultKind[] = ['split', 'apart'];

/** @param servers of NATS @returns what can be done where there are so many */
export function kindsFor(servers: number): FaultKind[] {
  return faultKinds.filter((kind) => servers > 1 || !ofSeveral.includes(kind));
}

async function everyServer(nats: NatsServers, what: (server: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: nats.count }, (_, server) => what(server)));
}

async function killLeader(cluster: FaultyCluster, stream: string, forMs: number): Promise<void> {
  const server = await cluster.leaderOf(stream);
  await cluster.nats.kill(server);
  await passing(forMs);
  await cluster.nats.restart(server);
}

/** It may be refused. */
async function operate({ hosts }: FaultyCluster, host: string, path: string, body: object, forMs: number) {
  if (!hosts.isUp(host)) return;
  const signal = AbortSignal.timeout(forMs);
  await postControl(hosts.dataDir(host), path, { ...body, by: 'a test' }, signal).catch(() => {});
}

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

/**
 * Injects the faults of a round, which may overlap, and waits until all are healed.
 *
 * @param onHealed is told how long a fault took to begin and to heal beside its time, milliseconds
 */
export async function injectFaults(
  cluster: FaultyCluster,
  round: readonly Fault[],
  onHealed: (fault: Fault, extraMs: number) => void = () => {},
): Promise<void> {
  await Promise.all(
    round.map(async (fault) => {
      const { kind, whom, afterMs, forMs } = fault;
      await passing(afterMs);
      const began = performance.now();
      await faults[kind](cluster, cluster.hostOf(whom), forMs);
      onHealed(fault, performance.now() - began - forMs);
    }),
  );
}
