// `npm run chaos`: three hosts and three servers of NATS, or one, to which faults happen by chance, and what must hold all the same. See
// docs/testing.md.
//   npm run chaos                          three minutes, with a new seed
//   npm run chaos -- --seconds=3600        so long, about: it is what the schedule takes where nothing is slow
//   npm run chaos -- --seed=7              the schedule of this seed again
//   npm run chaos -- --only=freeze,cut     only these faults
//   npm run chaos -- --servers=1           one server of NATS, with one copy of each stream
//   npm run chaos -- --lease=5000          the lease of the pump, milliseconds
//   npm run chaos -- --shrink=0            leaves out no faults after a failure; 8 attempts unless said
// Ends with 1 when a rule was broken. The shortest schedule found that breaks one is printed last.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { chaosSchedule, runSchedule, type Schedule, shrink, textOf } from '../test/support/hosts/chaos.ts';
import { type FaultKind, faultKinds, kindsFor } from '../test/support/hosts/faults.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '180' },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
    servers: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    lease: { type: 'string', default: '1500' },
    shrink: { type: 'string', default: '8' },
  },
});
const only = flags.only.split(',').filter(Boolean);
const unknown = only.filter((kind) => !faultKinds.includes(kind as FaultKind));
if (unknown.length > 0)
  throw new Error(`no such fault: ${unknown.join(', ')}; there are ${faultKinds.join(', ')}`);
const servers = flags.servers === '1' ? 1 : 3;
const kinds = kindsFor(servers).filter((kind) => only.length === 0 || only.includes(kind));
if (!kinds.some((kind) => kind !== 'revoke')) throw new Error('name a fault beside revoke');
const [seed, seconds, leaseMs] = [Number(flags.seed), Number(flags.seconds), Number(flags.lease)];

const schedule = chaosSchedule({ seed, seconds, leaseMs, kinds });
const given = only.length > 0 ? ` --only=${only.join(',')}` : '';
console.log(
  `npm run chaos -- --seed=${seed} --seconds=${seconds} --lease=${leaseMs} --servers=${servers}${given}`,
);
console.log(textOf(schedule));
const run = (one: Schedule) => runSchedule(one, { leaseMs, servers, log: (line) => console.log(line) });
const violations = await run(schedule);
if (violations.length > 0) {
  const shortest = await shrink(schedule, Number(flags.shrink), async (one) => {
    console.log(`once more with ${one.length} of ${schedule.length} rounds`);
    return (await run(one)).length > 0;
  });
  console.log(
    `seed ${seed} breaks a rule; the shortest schedule that was found to break one:\n${textOf(shortest)}`,
  );
  process.exitCode = 1;
}
