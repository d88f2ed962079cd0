import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ClusterPosition } from '../../../../src/plugins/cluster/mirror/position.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const SHARED = { incarnation: 'first', seq: 3, epoch: 1, trail: ['a', 'b', 'c'] };
const MIRROR = { incarnation: 2, streamSeq: 9, seq: 7, hash: 'abc' };

test('[C13] what a host knows of the streams is in one file, written within a second, and read at its next start', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  const position = ClusterPosition.open(dir, clock, (error) => t.fail(String(error)));
  t.deepEqual(position.current, {});
  position.set({ shared: SHARED });
  position.set({ mirror: MIRROR });
  t.throws(() => readFileSync(join(dir, 'cluster-position.json')));
  await clock.advance(1_000);
  await position.close();
  const again = ClusterPosition.open(dir, clock, (error) => t.fail(String(error)));
  t.deepEqual(again.current, { shared: SHARED, mirror: MIRROR });
  again.set({ shared: { ...SHARED, seq: 4 } });
  await again.close();
  t.is(ClusterPosition.open(dir, clock, () => {}).current.shared?.seq, 4);
  t.is(clock.armed, 0);
});

test('[C13] a position that cannot be read is told and counts as none', (t) => {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'cluster-position.json'), '{"shared":{"seq":-1}}');
  const told: unknown[] = [];
  t.deepEqual(ClusterPosition.open(dir, new VirtualClock(), (error) => told.push(error)).current, {});
  t.is(told.length, 1);
});
