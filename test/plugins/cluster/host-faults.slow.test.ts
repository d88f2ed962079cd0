import test, { type ExecutionContext } from 'ava';
import { chaosSchedule, runSchedule, textOf } from '../../support/hosts/chaos.ts';
import { type Fault, kindsFor } from '../../support/hosts/faults.ts';

const LEASE_MS = 1_500;
/** What happens by chance is that of `npm run chaos -- --seed=41457 --seconds=30 --servers=3` (or 1): the same on every machine. */
const SEED = 41_457;
const SECONDS = 30;

const ofHolder = (kind: Fault['kind'], forMs: number): Fault => ({ kind, whom: 'holder', afterMs: 0, forMs });

/** What the holder meets in any case, alone: where it does not come by chance, it is done besides. */
const OF_THREE_SERVERS: readonly Fault[] = [
  ofHolder('freeze', 2 * LEASE_MS),
  ofHolder('kill', LEASE_MS),
  ofHolder('burn', LEASE_MS),
  ofHolder('cut', 2 * LEASE_MS),
  ofHolder('cut-down', 2 * LEASE_MS),
  ofHolder('cut-up', 2 * LEASE_MS),
  ofHolder('apart', 2 * LEASE_MS),
  ofHolder('split', 1_000),
  ofHolder('kill-server', 1_000),
  ofHolder('full-disk', 1_000),
  ofHolder('delete-log', 500),
  ofHolder('slow', 3_000),
];
const OF_ONE_SERVER: readonly Fault[] = [
  ofHolder('kill-nats', 2 * LEASE_MS),
  ofHolder('full-disk', 2 * LEASE_MS),
  ofHolder('set-back', LEASE_MS),
  ofHolder('delete-ledger', 500),
  ofHolder('delete-shared', 500),
  ofHolder('delete-proofs', 500),
  ofHolder('delete-log', 500),
  ofHolder('repeat', 500),
  ofHolder('drain', LEASE_MS),
  ofHolder('stop', 500),
];

/** Whom these are meant for does not matter. */
const OF_ALL: readonly Fault['kind'][] = [
  'split',
  'kill-nats',
  'set-back',
  'delete-ledger',
  'delete-shared',
  'delete-proofs',
];

/** Whether a fault does what another one does: to the holder, and past its lease where that one lasts so long. */
function isLike(fault: Fault, wanted: Fault): boolean {
  const meets = fault.whom === 'holder' || OF_ALL.includes(fault.kind);
  return fault.kind === wanted.kind && meets && fault.forMs >= Math.min(wanted.forMs, LEASE_MS);
}

async function survive(t: ExecutionContext, servers: 1 | 3, wanted: readonly Fault[]): Promise<void> {
  const byChance = chaosSchedule({
    ...{ seed: SEED, seconds: SECONDS },
    ...{ leaseMs: LEASE_MS, kinds: kindsFor(servers) },
  });
  const lacking = wanted.filter((fault) => !byChance.flat().some((one) => isLike(one, fault)));
  const besides = lacking.map((fault) => {
    // Meanwhile a key that is in use is revoked, at a host that may be able to.
    const revoked: Fault = { kind: 'revoke', whom: 'first', afterMs: fault.forMs / 2, forMs: 0 };
    return [fault, revoked];
  });
  const schedule = [...byChance, ...besides];
  t.log(`seed ${SEED}, ${servers} servers, then what it lacks:\n${textOf(schedule)}`);
  t.deepEqual(await runSchedule(schedule, { leaseMs: LEASE_MS, servers, log: (line) => t.log(line) }), []);
}

test.serial(
  `[C13,G14,G16] whatever happens to hosts, to their links and to NATS, nothing is done out of order, twice or in vain (seed ${SEED})`,
  async (t) => {
    t.timeout(900_000);
    await survive(t, 3, OF_THREE_SERVERS);
  },
);

test.serial(
  `[C13,G14,G16] with one server of NATS, too: restarted, full, set back, robbed of its streams, hearing things twice (seed ${SEED})`,
  async (t) => {
    t.timeout(900_000);
    await survive(t, 1, OF_ONE_SERVER);
  },
);
