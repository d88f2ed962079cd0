import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { Fences } from '../../../../src/plugins/cluster/mirror/fences.ts';
import type { OrphanedBranch } from '../../../../src/plugins/cluster/mirror/orphans.ts';
import { silent } from '../../../support/cluster.ts';
import { holdLog } from '../../../support/held-log.ts';
import { doorRecord } from '../../../support/plain-log.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const FENCE = { singleton: 'doors', token: '1:7', by: 'two', atSeq: 2, streamSeq: 3 };
const ORPHANS = 'cluster-orphans.json';

/** A host that has recorded 5 records of `doors`, and hears of fences. */
async function setUp(t: ExecutionContext, clock: Clock = systemClock) {
  const dataDir = tempDir(t);
  const log = new SqliteLog({ dataDir, patienceMs: 50 });
  t.teardown(() => log.close());
  const append = async (count: number) => {
    for (let index = 0; index < count; index += 1)
      log.append(doorRecord(log.lastSeq() + 1), { durability: 'batched' });
    await log.whenDurable(log.lastSeq());
  };
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const told: OrphanedBranch[] = [];
  const happens = { onFenced: () => {}, onOrphaned: () => {} };
  const open = () =>
    new Fences({
      ...{ dataDir, log, reader, clock, logger: silent },
      typesOf: () => ['test.door'],
      begunBy: () => undefined,
      onFenced: () => happens.onFenced(),
      onOrphaned: (branch) => {
        told.push(branch);
        happens.onOrphaned();
      },
    });
  // A folder in the place of the draft keeps a file from being written, as a full disk does.
  const draft = (file: string) => join(dataDir, `${file}.new`);
  const block = (file: string) => mkdirSync(draft(file));
  const unblock = (file: string) => rmdirSync(draft(file));
  const saved = (file: string) => readFileSync(join(dataDir, file), 'utf8');
  await append(5);
  return { fences: open(), open, dataDir, log, append, reader, told, happens, block, unblock, saved };
}

test('[C13] an orphaned branch is told when its end is on the disk, and what could not be saved is tried again', async (t) => {
  const { fences, told, happens, block, unblock, saved } = await setUp(t);
  happens.onFenced = () => block(ORPHANS);
  happens.onOrphaned = () => t.regex(saved(ORPHANS), /"to":5/);
  await t.throwsAsync(fences.meet(FENCE, 1));
  t.deepEqual(told, []);
  await t.throwsAsync(fences.tell());
  unblock(ORPHANS);
  await fences.meet(FENCE, 1);
  t.like(told, [{ after: 2, to: 5, records: 3 }]);
  await fences.tell();
  t.is(told.length, 1);
  t.deepEqual(fences.orphans(), told);
});

test('[C13] a branch whose end was saved when the host crashed is told at its next start, and once told no more', async (t) => {
  const { fences, open, dataDir, told, happens, saved } = await setUp(t);
  let asOfCrash = '';
  happens.onOrphaned = () => {
    asOfCrash = saved(ORPHANS);
  };
  await fences.meet(FENCE, 1);
  const again = open();
  again.start(5);
  await again.tell();
  t.is(told.length, 1);
  writeFileSync(join(dataDir, ORPHANS), asOfCrash);
  const afterCrash = open();
  afterCrash.start(5);
  await afterCrash.tell();
  t.is(told.length, 2);
  t.like(told[1], { after: 2, to: 5, records: 3 });
});

test('[C13] a takeover is noted when its fence is on the disk, also when the first attempt to save it failed', async (t) => {
  const { fences, reader, block, unblock, saved } = await setUp(t);
  const file = 'cluster-fences.json';
  const takeover = { ...FENCE, host: 'one', seq: 2, hash: reader.hashOf(2) ?? '' };
  block(file);
  await t.throwsAsync(fences.takenOver(takeover, 1));
  await t.throwsAsync(fences.takenOver(takeover, 1), undefined, 'it is not on the disk yet');
  unblock(file);
  t.true(await fences.takenOver(takeover, 1));
  t.regex(saved(file), /"token":"1:7"/);
});

test('[C13] a takeover is not noted while the log takes nothing, and nothing waits for that', async (t) => {
  const { fences, dataDir, log, append, reader } = await setUp(t, new VirtualClock()); // in which no time passes
  const takeover = { ...FENCE, host: 'one', seq: 2, hash: reader.hashOf(2) ?? '' };
  const release = holdLog(t, dataDir);
  log.append(doorRecord(log.lastSeq() + 1), { durability: 'batched' });
  await until('the log takes nothing', () => log.status().state === 'frozen');
  t.false(await fences.takenOver(takeover, 1));
  await fences.tell();
  release();
  await append(1);
  t.true(await fences.takenOver(takeover, 1));
});

test('[C13] records that two hosts have fenced are told as orphaned once', async (t) => {
  const { fences, append, told } = await setUp(t);
  await fences.meet(FENCE, 1);
  await fences.meet({ ...FENCE, token: '1:8', by: 'three', streamSeq: 4 }, 1);
  t.like(told, [{ token: '1:7', after: 2, to: 5, records: 3 }]);
  t.is(told.length, 1);
  await append(2);
  await fences.meet({ ...FENCE, token: '1:9', by: 'three', atSeq: 4, streamSeq: 5 }, 1);
  t.like(told[1], { token: '1:9', after: 5, to: 7, records: 2 });
  // Servers that were set back may have lost the fence of a host that went on from an earlier record.
  await fences.meet({ ...FENCE, token: '1:10', by: 'four', atSeq: 1, streamSeq: 6 }, 1);
  t.like(told[2], { token: '1:10', after: 1, records: 1 });
  t.is(told.length, 3);
});
