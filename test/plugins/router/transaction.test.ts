import test from 'ava';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type Config, Rig, withCircle } from './rig.ts';

const LEG = 'eth1.30';
const NONE_TEXT = 'No ongoing config change transaction context, cannot commit or revert';

/** The config with another address on Guest. */
function changed(config: Config, ipv4 = '10.77.31.1/24'): Config {
  const copy = structuredClone(config);
  copy.interface.vlan[LEG].ipv4 = ipv4;
  return copy;
}

const withoutNcid = ({ ncid: _, ...rest }: Config): Config => rest;
const append = (transID: string) => ({ transactionOp: 'append', transID });

test.serial('[R6] append is applied and persisted; commit keeps it and its ncid', async (t) => {
  const clock = new VirtualClock();
  const rig = await Rig.start(t, { clock });
  const next = changed(await rig.active());
  const { ncid } = (await rig.set(next, append('t1'))).body;
  t.deepEqual(await rig.active(), { ...next, ncid });
  t.deepEqual((await rig.state(LEG)).ip4, ['10.77.31.1/24']);

  const commit = await rig.set({}, { transactionOp: 'commit', transID: 't1' });
  t.deepEqual(commit, { status: 200, body: { errors: [], ncid } });
  await rig.pass(300_000);
  t.deepEqual(await rig.active(), { ...next, ncid });
});

test.serial(
  '[R6] revert restores the config from before, in store and kernel, under a new ncid',
  async (t) => {
    const rig = await Rig.start(t);
    const before = await rig.active();
    const appended = await rig.set(changed(before), append('t1'));
    const reverted = await rig.set({}, { transactionOp: 'revert', transID: 't1' });
    t.is(reverted.status, 200);
    t.is(new Set([before.ncid, appended.body.ncid, reverted.body.ncid]).size, 3);
    t.deepEqual(await rig.active(), { ...before, ncid: reverted.body.ncid });
    t.deepEqual((await rig.state(LEG)).ip4, ['10.77.30.1/24']);
    t.deepEqual(
      (await rig.history()).map(({ op, changed: paths }) => [op, paths]),
      [
        ['revert', ['interface.vlan.eth1.30.ipv4']],
        ['append', ['interface.vlan.eth1.30.ipv4']],
      ],
    );
  },
);

test.serial(
  '[R6] append then silence reverts after 120 s and not before; later commits are refused',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const before = await rig.active();
    const next = changed(before);
    const { ncid } = (await rig.set(next, append('t1'))).body;
    await rig.settled();
    await rig.pass(119_999);
    t.is((await rig.active()).ncid, ncid);
    await rig.pass(1);
    t.deepEqual(withoutNcid(await rig.active()), withoutNcid(before));
    t.false([ncid, before.ncid].includes((await rig.active()).ncid));
    t.deepEqual(await rig.set({}, { transactionOp: 'commit', transID: 't1' }), {
      status: 400,
      body: { errors: [NONE_TEXT], code: 'HF_ROUTER_TRANSACTION_NONE' },
    });
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R6] a second append of the same transaction starts the window anew', async (t) => {
  const clock = new VirtualClock();
  const rig = await Rig.start(t, { clock });
  const before = await rig.active();
  const first = (await rig.set(changed(before), append('t1'))).body;
  await rig.settled();
  await rig.pass(100_000);
  const second = await rig.set(changed({ ...before, ncid: first.ncid }, '10.77.32.1/24'), append('t1'));
  t.is(second.status, 200);
  await rig.settled();
  await rig.pass(119_999);
  t.is((await rig.active()).ncid, second.body.ncid);
  await rig.pass(1);
  t.deepEqual(withoutNcid(await rig.active()), withoutNcid(before));
});

test.serial(
  '[R7] a second append that fails leaves the pending config, kernel and original deadline',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const before = await rig.active();
    await rig.set(changed(before), append('t1'));
    const pending = await rig.active();
    await rig.settled();
    await rig.pass(100_000);
    const broken = structuredClone(pending);
    withCircle(broken);
    t.is((await rig.set(broken, append('t1'))).status, 500);
    t.deepEqual(await rig.active(), pending);
    t.deepEqual((await rig.state(LEG)).ip4, ['10.77.31.1/24']);
    await rig.settled();
    await rig.pass(20_000);
    t.deepEqual(withoutNcid(await rig.active()), withoutNcid(before));
  },
);

test.serial(
  '[R40] the pending transaction is shown with its id, deadline, seconds left, and who opened it',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const report = () =>
      rig.runtime.registrations.health.find(({ name }) => name === 'transaction')?.report();
    t.is(report(), undefined);
    await rig.set(changed(await rig.active()), append('t1'));
    await rig.settled();
    await clock.advance(30_000);
    t.like(report(), {
      transID: 't1',
      who: '127.0.0.1',
      deadline: new Date(clock.now() + 90_000).toISOString(),
      secondsLeft: 90,
    });
    await rig.set({}, { transactionOp: 'commit', transID: 't1' });
    t.is(report(), undefined);
  },
);

for (const [when, down] of [
  ['at its original deadline', 10_000],
  ['at once when that has passed', 500_000],
] as const) {
  test.serial(`[R9] a transaction that was pending at a stop reverts ${when}`, async (t) => {
    const clock = new VirtualClock();
    const first = await Rig.start(t, { clock });
    const before = await first.active();
    const { ncid } = (await first.set(changed(before), append('t1'))).body;
    await first.settled();
    await first.pass(60_000);
    await first.runtime.stop('test');
    clock.jump(down);

    const second = await Rig.start(t, { clock, dataDir: first.dataDir });
    if (down < 60_000) {
      t.is((await second.active()).ncid, ncid);
      t.deepEqual((await second.state(LEG)).ip4, ['10.77.31.1/24']);
      await second.pass(60_000 - down - 1);
      t.is((await second.active()).ncid, ncid);
      await second.pass(1);
    } else {
      await second.pass(0);
    }
    t.deepEqual(withoutNcid(await second.active()), withoutNcid(before));
    t.deepEqual((await second.state(LEG)).ip4, ['10.77.30.1/24']);
  });
}

test.serial(
  '[R6] a window that is configured anew counts from the next start, for the next transaction',
  async (t) => {
    const clock = new VirtualClock();
    const first = await Rig.start(t, { clock });
    await first.set(changed(await first.active()), append('t1'));
    await first.settled();
    await first.runtime.stop('test');

    const second = await Rig.start(t, { clock, dataDir: first.dataDir, options: { windowMs: 30_000 } });
    await second.pass(119_000);
    t.is(second.actor().context.pending?.transID, 't1', 'an open window stays as long as it was');
    await second.pass(1_000);
    const before = await second.active();
    await second.set(changed(before), append('t2'));
    await second.settled();
    await second.pass(30_000);
    t.deepEqual(withoutNcid(await second.active()), withoutNcid(before));
    t.is((await second.history())[0].who, 'holdfast', 'nobody asked for the revert');
    t.is(second.divergence(), undefined);
  },
);

test.serial('a lost store is filled again with what the log last knew to be active', async (t) => {
  const first = await Rig.start(t);
  const next = changed(await first.active());
  const { ncid } = (await first.set(next)).body;
  await first.settled();
  await first.runtime.stop('test');
  const { rmSync } = await import('node:fs');
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${first.dataDir}/router.db${suffix}`, { force: true });

  const second = await Rig.start(t, { dataDir: first.dataDir });
  t.deepEqual(await second.active(), { ...next, ncid });
});
