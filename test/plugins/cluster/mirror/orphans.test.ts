import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { exportPartOf, OrphanedBranches } from '../../../../src/plugins/cluster/mirror/orphans.ts';
import { appendRecords, doorRecord } from '../../../support/plain-log.ts';
import { tempDir } from '../../../support/temp.ts';

test('[C13] an orphaned branch holds the records of its singleton up to its return, and a crash does not lose it', async (t) => {
  const dataDir = tempDir(t);
  const others = { actor: 'test.lamp/one' };
  await appendRecords(dataDir, [
    ...[1, 2, 3, 4].map((seq) => doorRecord(seq)),
    doorRecord(5, others),
    doorRecord(6),
    doorRecord(7, { event: { type: 'adopt', host: 'two', seq: 9 } }),
    doorRecord(8),
  ]);
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const open = () => new OrphanedBranches(dataDir, reader, (error) => t.fail(String(error)));
  const branches = open();
  const fence = { singleton: 'doors', token: '1:7', by: 'two', atSeq: 3, streamSeq: 12 };
  t.true(branches.isNew(fence));
  branches.begin(fence, 1, ['test.door']);
  await branches.saved();

  const after = open();
  t.true(after.isNew(fence));
  after.endAll(8);
  const [branch] = after.list();
  t.like(branch, { singleton: 'doors', by: 'two', after: 3, records: 2 });
  t.false(after.isNew(fence));
  t.true(after.isNew({ ...fence, token: '1:9' }));
  t.is(after.list().length, 1);
  t.deepEqual(branch && exportPartOf(reader, branch), {
    from: 4,
    to: 6,
    actors: new Set(['test.door/1', 'test.door/0']),
  });
});

test('[C13] an orphaned branch that the file of them does not say well is told, and hides none of the others', async (t) => {
  const dataDir = tempDir(t);
  await appendRecords(
    dataDir,
    [1, 2, 3, 4, 5].map((seq) => doorRecord(seq)),
  );
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const told: unknown[] = [];
  const open = () => new OrphanedBranches(dataDir, reader, (error) => told.push(error));
  const branches = open();
  for (const atSeq of [2, 3, 4]) {
    const number = atSeq + 5;
    const fence = { singleton: 'doors', token: `1:${number}`, by: 'two', atSeq, streamSeq: number };
    branches.begin(fence, 1, ['test.door']);
    branches.end(fence, atSeq + 1);
  }
  branches.exported(1, 1_000);
  await branches.saved();
  const file = join(dataDir, 'cluster-orphans.json');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"token":"1:8"', '"token":8'));
  t.deepEqual(
    open()
      .list()
      .map(({ token, exportedAt }) => [token, exportedAt]),
    [
      ['1:7', 1_000],
      ['1:9', undefined],
    ],
  );
  t.is(told.length, 1);
});

test('[C13] a takeover by an older token than that of the fence is a part of the branch', async (t) => {
  const dataDir = tempDir(t);
  const adopting = { event: { type: 'adopt', host: 'two', seq: 9 } };
  const taking = (number: number) => ({
    ...{ actor: 'cluster.singleton/doors', event: { type: 'TAKING', token: `1:${number}` } },
  });
  await appendRecords(dataDir, [
    ...[1, 2, 3].map((seq) => doorRecord(seq)),
    doorRecord(4, taking(6)),
    doorRecord(5, adopting),
    doorRecord(6),
    doorRecord(7, taking(8)),
    doorRecord(8, adopting),
  ]);
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  for (const atSeq of [3, 4]) {
    const branches = new OrphanedBranches(tempDir(t), reader, (error) => t.fail(String(error)));
    const fence = { singleton: 'doors', token: '1:7', by: 'two', atSeq };
    branches.begin(fence, 1, ['test.door']);
    branches.end(fence, 8);
    t.like(branches.list()[0], { after: atSeq, to: 7, records: 2 });
  }
});
