import test from 'ava';
import type { Fault } from '../../support/hosts/faults.ts';
import { injectFaults } from '../../support/hosts/faults.ts';
import { FaultyCluster } from '../../support/hosts/faulty-cluster.ts';

const LEASE_MS = 1_500;

/** What is done to whom; the clocks of the three hosts are minutes apart all the time. */
const ROUNDS: readonly Omit<Fault, 'afterMs'>[] = [
  { kind: 'freeze', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'cut', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'cut-down', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'cut-up', whom: 'holder', forMs: 2 * LEASE_MS },
  { kind: 'kill-server', whom: 'holder', forMs: 1_000 },
  { kind: 'delete-log', whom: 'holder', forMs: 500 },
  { kind: 'slow', whom: 'holder', forMs: 3_000 },
];

test('[C13] whatever happens to the holder, to its links and to NATS, nothing is done out of order, twice or in vain', async (t) => {
  t.timeout(600_000);
  const cluster = await FaultyCluster.start(t, LEASE_MS);
  for (const fault of ROUNDS) {
    const began = performance.now();
    await injectFaults(cluster, [{ ...fault, afterMs: 0 }]);
    t.deepEqual(await cluster.goesOn(), [], fault.kind);
    t.log(`${fault.kind}: ${Math.round(performance.now() - began)} ms`);
  }
  t.deepEqual(await cluster.end(), []);
  t.log(`${cluster.hosts.journal().length / 2} strokes`);
});
