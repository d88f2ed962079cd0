import test from 'ava';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { exportPartOf, OrphanedBranches } from '../../../../src/plugins/cluster/mirror/orphans.ts';
import { ClusterPosition } from '../../../../src/plugins/cluster/mirror/position.ts';
import { appendRecords, doorRecord } from '../../../support/plain-log.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

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
  const open = () => ClusterPosition.open(dataDir, new VirtualClock(), (error) => t.fail(String(error)));
  const position = open();
  const branches = new OrphanedBranches(position, reader);
  const fence = { singleton: 'doors', token: '1:7', by: 'two', atSeq: 3, streamSeq: 12 };
  t.true(branches.isNew(fence));
  branches.begin(fence, 1, ['test.door']);
  await position.close();

  const after = new OrphanedBranches(open(), reader);
  t.true(after.isNew(fence));
  const [branch] = after.endAll(8);
  t.like(branch, { singleton: 'doors', by: 'two', after: 3, records: 2 });
  t.false(after.isNew(fence));
  t.true(after.isNew({ ...fence, token: '1:9' }));
  t.deepEqual(after.list(), [branch]);
  t.deepEqual(branch && exportPartOf(reader, branch), {
    from: 4,
    to: 6,
    actors: new Set(['test.door/1', 'test.door/0']),
  });
});
