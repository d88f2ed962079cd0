import test, { type ExecutionContext } from 'ava';
import type { Fault } from '../../support/hosts/faults.ts';
import { injectFaults } from '../../support/hosts/faults.ts';
import { FaultyCluster } from '../../support/hosts/faulty-cluster.ts';

const LEASE_MS = 1_500;

type Round = Omit<Fault, 'afterMs'>;

/** What is done to whom; the clocks of the three hosts are minutes apart all the time. */
const OF_THREE_SERVERS: readonly Round[] = [
  { kind: 'freeze', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'kill', whom: 'holder', forMs: LEASE_MS },
  { kind: 'cut', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'cut-down', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'cut-up', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'apart', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'split', whom: 'holder', forMs: 1_000 },
  { kind: 'kill-server', whom: 'holder', forMs: 1_000 },
  { kind: 'full-disk', whom: 'holder', forMs: 1_000 },
  { kind: 'delete-log', whom: 'holder', forMs: 500 },
  { kind: 'slow', whom: 'holder', forMs: 3_000 },
];
const OF_ONE_SERVER: readonly Round[] = [
  { kind: 'kill-nats', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'full-disk', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'set-back', whom: 'holder', forMs: LEASE_MS },
  { kind: 'delete-ledger', whom: 'holder', forMs: 500 },
  { kind: 'delete-shared', whom: 'holder', forMs: 500 },
  { kind: 'delete-beats', whom: 'holder', forMs: 500 },
  { kind: 'delete-log', whom: 'holder', forMs: 500 },
  { kind: 'repeat', whom: 'holder', forMs: 500 },
  { kind: 'drain', whom: 'holder', forMs: LEASE_MS },
  { kind: 'stop', whom: 'holder', forMs: 500 },
];

async function survive(t: ExecutionContext, servers: 1 | 3, rounds: readonly Round[]): Promise<void> {
  const cluster = await FaultyCluster.start(t, { leaseMs: LEASE_MS, servers });
  for (const fault of rounds) {
    const began = performance.now();
    // Meanwhile a key that is in use is revoked, at a host that may be able to.
    const revoked: Fault = { kind: 'revoke', whom: 'first', afterMs: fault.forMs / 2, forMs: 0 };
    await injectFaults(cluster, [{ ...fault, afterMs: 0 }, revoked]);
    t.deepEqual(await cluster.goesOn(), [], fault.kind);
    t.log(`${fault.kind}: ${Math.round(performance.now() - began)} ms`);
  }
  t.deepEqual(await cluster.end(), []);
  t.log(`${cluster.hosts.journal().length / 2} strokes, ${cluster.callers.calls.length} calls`);
}

test.serial(
  '[C13,G14,G16] whatever happens to the holder, to its links and to NATS, nothing is done out of order, twice or in vain',
  async (t) => {
    t.timeout(900_000);
    await survive(t, 3, OF_THREE_SERVERS);
  },
);

test.serial(
  '[C13,G14,G16] with one server of NATS, too: restarted, full, set back, robbed of its streams, hearing things twice',
  async (t) => {
    t.timeout(900_000);
    await survive(t, 1, OF_ONE_SERVER);
  },
);
