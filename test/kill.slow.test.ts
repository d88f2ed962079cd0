import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { active, startInstance, writeConfig } from './support/instance.ts';
import { atRest, killRounds, replayed, stuckTimers } from './support/kill-rounds.ts';
import { tempDir } from './support/temp.ts';

const ROUNDS = 20; // 1,000 of them: `npm run bench -- kill`

test('[C5,R9] killed at 20 random instants under load: no acknowledged write lost, no divergence, no stuck timer', async (t) => {
  t.timeout(300_000);
  const dir = tempDir(t);
  const config = writeConfig(dir, { windowMs: 400 });
  const report = await killRounds(t, dir, config, ROUNDS);
  t.log(`${report.kills} kills, ${report.acknowledged} acknowledged writes`);
  t.true(report.acknowledged > 0);
  t.deepEqual(report.lost, []);

  const { router, child } = await startInstance(t, dir, config);
  // Open transactions revert, legs are read twice and healed; one that met a transaction asks again after 5 s.
  for (let waited = 0; waited < 60_000 && !atRest(dir); waited += 250) await sleep(250);
  const { vlan } = (await active(router)).interface;
  for (const intf of ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70']) {
    t.is(vlan[intf]?.ipv6?.length, 1, `${intf} is whole`);
  }
  t.is(vlan['eth1.30']?.ipv6, undefined);
  t.is(vlan['eth1.60']?.ipv6, undefined);
  t.deepEqual(stuckTimers(dir, 2_000), []);
  await child.kill('SIGTERM');

  const { divergence, notCompared } = await replayed(dir, config);
  t.is(divergence, undefined);
  t.deepEqual(notCompared, []);
});
