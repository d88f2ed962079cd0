import test from 'ava';
import { describeConfigRecord } from '../../../../src/plugins/router/words.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { Rig } from '../rig.ts';

test('[R40] the log tells a transaction in an operator’s words: who, what, refused or not, and how it ended', async (t) => {
  const clock = new VirtualClock();
  const rig = await Rig.start(t, { clock });
  const config = await rig.active();
  config.interface.vlan['eth1.30'].ipv4 = '10.77.31.1/24';
  await rig.set(config, { transactionOp: 'append', transID: 't1' });
  await rig.set(await rig.active());
  await rig.settled();
  await rig.pass(120_000);
  await rig.call('POST', '/v1/config/apply_current_config');
  await rig.settled();
  const story = (await rig.records())
    .map((record) => describeConfigRecord(record as any)?.replaceAll(/ncid \w+…/g, 'ncid …'))
    .filter((words) => words !== '' && words !== undefined);
  t.deepEqual(story, [
    'the store contains ncid …',
    '127.0.0.1 appends t1: interface.vlan.eth1.30.ipv4',
    'ncid … is active, reapplied: eth1.30',
    '127.0.0.1 saves: nothing changed (refused: A config change transaction context is in progress, reject non-transaction change request)',
    'the window of t1 is over, reverts',
    'ncid … is active, reapplied: eth1.30',
    'nobody waits for the answer',
    '127.0.0.1 reapplies the current config',
    'ncid … is active, reapplied: eth0, eth1, eth2 and 13 more',
  ]);
});
