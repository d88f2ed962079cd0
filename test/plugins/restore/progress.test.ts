import test from 'ava';
import { progressText } from '../../../src/plugins/restore/command-output.ts';
import { ProgressBoard } from '../../../src/plugins/restore/steps.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('[B6] a drill that copies shows bytes, rate and time left; one that counts points shows no rate', async (t) => {
  const clock = new VirtualClock();
  const board = new ProgressBoard(clock);
  board.begin('copying', { done: 0, total: 40_000_000, unit: 'bytes' });
  t.is(progressText('restoring', board.now), 'restoring: copying, 0 B of 40.0 MB');
  await clock.advance(2_000);
  board.at(10_000_000);
  t.is(progressText('restoring', board.now), 'restoring: copying, 10.0 MB of 40.0 MB, 5.0 MB/s, 6.0 s left');
  board.begin('comparing', { done: 0, total: 100, unit: 'points' });
  await clock.advance(1_000);
  board.at(50);
  t.is(progressText('comparing', board.now), 'comparing: comparing, 50 of 100 points, 1.0 s left');
});
