/**
 * A host that competes for the singleton `work`: it says `ready`, `gained <token> <host before>` and `lost <reason>` with the
 * time of the machine, and writes to its journal each act that its lease allows: the time and the number of its token.
 */

import { appendFileSync } from 'node:fs';
import type { Lease } from '../../src/core/contracts/cluster.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { asEpochMs } from '../../src/core/kernel/ids.ts';
import { Leases } from '../../src/plugins/cluster/leases/leases.ts';
import { LedgerStream } from '../../src/plugins/cluster/leases/ledger-stream.ts';
import { openLink } from './cluster.ts';
import { PATIENCE_MS } from './until.ts';

export interface LeaseChildOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly host: string;
  readonly folder: string;
  readonly ttlMs: number;
  readonly replicas: number;
  readonly journal: string;
  /** How far the wall clock of this host is ahead. */
  readonly aheadMs: number;
}

const { servers, name, host, folder, ttlMs, replicas, journal, aheadMs }: LeaseChildOptions = JSON.parse(
  process.argv[2] as string,
);
const machineMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const say = (line: string) => process.stdout.write(`${machineMs()} ${line}\n`);
const logger = createLogger({ level: 'silent' });
const clock = { ...systemClock, now: () => asEpochMs(systemClock.now() + aheadMs) };
const closing: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void closing.push(end), log: () => {} };
const link = await openLink(scope, servers, { clock, logger, host, isAlone: true });
if (!(await link.ready(PATIENCE_MS))) throw new Error(`no connection: ${link.problem}`);
let lease: Lease | undefined;
const leases = new Leases({
  log: new LedgerStream({ link, clock, logger, name, replicas, ttlMs }),
  self: { host, folder, version: '0.0.0', ttlMs },
  clock,
  logger,
  mirror: () => undefined,
  onGained: (gained, last) => {
    lease = gained;
    say(`gained ${lease.token} ${last?.host ?? ''}`);
  },
  onLost: (_, reason) => void say(`lost ${reason}`),
  onReleasing: (_, reason) => void say(`lost ${reason}`),
});
setInterval(() => {
  const at = machineMs(); // before the look at the deadline: what is written later was decided now
  if (lease && clock.monotonic() < lease.deadline()) {
    appendFileSync(journal, `${at} ${host} ${lease.token.split(':')[1]}\n`);
  }
}, 10);
leases.offer('work');
leases.start();
process.stdin.on('data', () => void leases.stop().then(() => process.exit(0)));
process.stdin.on('close', () => process.exit()); // whoever drove it is gone
say('ready');
