import test from 'ava';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../support/cli.ts';
import { Rig } from './rig.ts';

test('[C6] a revert whose config was shredded says so with a code, and the config in force stays', async (t) => {
  const rig = await Rig.start(t);
  const before = await rig.active();
  const change = structuredClone(before);
  change.interface.vlan['eth1.10'].meta.name = 'changed';
  await rig.set(change, { transactionOp: 'append', transID: 't1' });
  await rig.settled();
  const reader = new SqliteReader(rig.dataDir);
  t.teardown(() => reader.close());
  const kept = reader.blobKeys(Number.MAX_SAFE_INTEGER);
  t.true(kept.length >= 1);
  await rig.runtime.services.log.shred(kept);
  const answer = await rig.set({}, { transactionOp: 'revert', transID: 't1' });
  await rig.settled();
  t.is(answer.status, 500);
  t.regex(answer.body.errors[0], /^The body fp_[0-9a-f]{32} was made unreadable at /);
  const codes = (await rig.records()).map(({ event }) => event.code).filter((code) => code !== undefined);
  t.deepEqual(codes, ['HF_LOG_SHREDDED', 'HF_ROUTER_APPLY_FAILED']);
  t.is((await rig.active()).interface.vlan['eth1.10'].meta.name, 'changed');
  t.is(rig.divergence(), undefined);
});

test('[C6] shredding by age spares what a transaction on the active config would revert to', async (t) => {
  const rig = await Rig.start(t);
  const older = await rig.active();
  older.interface.vlan['eth1.10'].meta.name = 'older';
  await rig.set(older);
  await rig.settled();
  const argv = ['log', 'shred', '--older-than', '0s', '--json', '--data-dir', rig.dataDir];
  const { code, out } = await call(argv, { cwd: rig.dataDir });
  t.is(code, 0);
  t.true(JSON.parse(out).shredded.length >= 1, 'what was active before is gone');
  const change = await rig.active();
  change.interface.vlan['eth1.10'].meta.name = 'changed';
  await rig.set(change, { transactionOp: 'append', transID: 't1' });
  t.is((await rig.set({}, { transactionOp: 'revert', transID: 't1' })).status, 200);
  t.is((await rig.active()).interface.vlan['eth1.10'].meta.name, 'older');
});

test('[C6] a transaction can be reverted also when the active config was shredded by name before it', async (t) => {
  const rig = await Rig.start(t);
  const before = await rig.active();
  await rig.settled();
  const reader = new SqliteReader(rig.dataDir);
  t.teardown(() => reader.close());
  await rig.runtime.services.log.shred(reader.blobKeys(Number.MAX_SAFE_INTEGER));
  const change = structuredClone(before);
  change.interface.vlan['eth1.10'].meta.name = 'changed';
  await rig.set(change, { transactionOp: 'append', transID: 't1' });
  t.is((await rig.set({}, { transactionOp: 'revert', transID: 't1' })).status, 200);
  t.deepEqual((await rig.active()).interface, before.interface);
});
