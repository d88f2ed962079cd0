import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type Config, Rig } from './rig.ts';

const LEG = 'eth1.30';
const withoutNcid = ({ ncid: _, ...rest }: Config): Config => rest;

/** What the disk held at one moment: the copy is made by another process, which disturbs no lock. */
function image(t: ExecutionContext, dataDir: string): string {
  const dir = join(tempDir(t), 'image');
  execFileSync('cp', ['-r', dataDir, dir]);
  return dir;
}

/**
 * A disk as a kill at another moment would have left it: the log of one image up to a record, and the store of
 * another image.
 */
function killedAt(t: ExecutionContext, log: string, seq: number, store: string): string {
  const dir = image(t, log);
  execFileSync('sh', ['-c', `rm -f ${dir}/router.db* && cp ${store}/router.db* ${dir}/`]);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.prepare('DELETE FROM records WHERE seq > ?').run(seq);
  for (const table of ['snapshots', 'checkpoints', 'signatures'])
    db.prepare(`DELETE FROM ${table} WHERE seq > ?`).run(seq);
  db.close();
  execFileSync('sh', ['-c', `rm -f ${dir}/secrets/log-head ${dir}/secrets/log-mark`]); // a kill had not told of later ones
  return dir;
}

const appended = (records: readonly LogRecord[], type: string) =>
  records.findLast(({ event }) => event.type === type)?.seq ?? 0;

/** Runs one write, and gives the images before and after it with the seqs at which a kill may come. */
async function write(t: ExecutionContext, rig: Rig, act: () => Promise<unknown>) {
  await rig.settled();
  const before = image(t, rig.dataDir);
  const first = rig.runtime.services.log.lastSeq() + 1;
  await act();
  await rig.settled();
  const after = image(t, rig.dataDir);
  const records = (await rig.records()).filter(({ seq }) => seq >= first);
  const asked = records.find(({ effects }) => effects.some(({ type }) => type === 'router.apply'))!.seq;
  const points: [seq: number, store: string, what: string][] = [
    [asked, before, 'before the save'],
    [asked, after, 'after the save, before its outcome'],
  ];
  const applied = appended(records, 'APPLIED');
  for (const { seq } of records) if (seq >= applied) points.push([seq, after, `after record ${seq - first}`]);
  return { after, points };
}

test.serial(
  '[R9] a kill at any point of a save leaves one config, under the ncid that was or would have been answered',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const config = await rig.active();
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    const { after, points } = await write(t, rig, () => rig.set(config));
    const expected = await rig.active();
    t.true(points.length >= 4);

    for (const [seq, store, what] of points) {
      const restarted = await Rig.start(t, { clock, dataDir: killedAt(t, after, seq, store) });
      await restarted.settled();
      t.deepEqual(await restarted.active(), expected, what);
      t.deepEqual((await restarted.state(LEG)).ip4, ['10.77.31.1/24'], what);
      t.is((await restarted.history()).length, 1, what);
      t.deepEqual(restarted.actor().value, { free: 'idle' }, what);
      const records = await restarted.records();
      const published = records.filter(
        (record) => record.event.effect === 'router.publish' && record.outcome,
      );
      t.is(published.length, 1, `${what}: the change was published, or is now`);
      t.is(restarted.divergence(), undefined, what);
      await restarted.runtime.stop('test');
    }
  },
);

test.serial(
  '[R9] a kill at any point of an append leaves a transaction that reverts at its deadline',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const before = await rig.active();
    const config = structuredClone(before);
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    const { after, points } = await write(t, rig, () =>
      rig.set(config, { transactionOp: 'append', transID: 't1' }),
    );
    const pending = await rig.active();
    const start = clock.now();

    for (const [seq, store, what] of points) {
      const now = new VirtualClock(start);
      const restarted = await Rig.start(t, { clock: now, dataDir: killedAt(t, after, seq, store) });
      await restarted.settled();
      t.deepEqual(await restarted.active(), pending, what);
      await restarted.pass(119_999);
      t.deepEqual(await restarted.active(), pending, what);
      await restarted.pass(1);
      t.deepEqual(withoutNcid(await restarted.active()), withoutNcid(before), what);
      t.deepEqual((await restarted.state(LEG)).ip4, ['10.77.30.1/24'], what);
      t.is(restarted.divergence(), undefined, what);
      await restarted.runtime.stop('test');
    }
  },
);

test.serial(
  '[R9] a kill at any point of an auto-revert leaves the config from before the transaction',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const before = await rig.active();
    const config = structuredClone(before);
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    await rig.set(config, { transactionOp: 'append', transID: 't1' });
    const { after, points } = await write(t, rig, () => rig.pass(120_000));
    const expected = await rig.active();
    t.deepEqual(withoutNcid(expected), withoutNcid(before));

    for (const [seq, store, what] of points) {
      const restarted = await Rig.start(t, { clock, dataDir: killedAt(t, after, seq, store) });
      await restarted.settled();
      t.deepEqual(await restarted.active(), expected, what);
      t.deepEqual(restarted.actor().context.last, { outcome: 'reverted', transID: 't1' }, what);
      const again = await restarted.set({}, { transactionOp: 'commit', transID: 't1' });
      t.is(again.body.code, 'HF_ROUTER_TRANSACTION_NONE', what);
      t.is(restarted.divergence(), undefined, what);
      await restarted.runtime.stop('test');
    }
  },
);

test.serial(
  '[R36] a store that was written behind the API while nothing ran is taken as it is, and alerted',
  async (t) => {
    const lines: string[] = [];
    const rig = await Rig.start(t);
    const older = image(t, rig.dataDir);
    const config = await rig.active();
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    await rig.set(config);
    await rig.settled();
    const newer = image(t, rig.dataDir);
    // Somebody restores yesterday's router.db.
    const last = rig.runtime.services.log.lastSeq();
    const restarted = await Rig.start(t, { dataDir: killedAt(t, newer, last, older), lines });
    await restarted.settled();
    t.is((await restarted.active()).ncid, config.ncid, 'the older config is served again');
    t.true(lines.some((line) => line.includes('router.store_changed')));
    t.is((await restarted.set(await restarted.active())).status, 200);
  },
);
