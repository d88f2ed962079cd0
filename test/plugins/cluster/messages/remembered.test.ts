import test from 'ava';
import { Remembered } from '../../../../src/plugins/cluster/messages/remembered.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

test('[C13] what was seen is known for its whole time, however much comes; when there is no room, new ones are refused', async (t) => {
  const clock = new VirtualClock();
  const seen = new Remembered<number>(clock, 60_000, 3);
  for (const number of [1, 2, 3]) t.true(seen.add(`m${number}`, number));
  t.false(seen.add('m4', 4));
  t.is(seen.get('m4'), undefined);
  await clock.advance(59_999);
  t.deepEqual(
    ['m1', 'm2', 'm3'].map((key) => seen.get(key)),
    [1, 2, 3],
  );
  t.false(seen.hasRoom);
  await clock.advance(1);
  t.is(seen.get('m1'), undefined);
  t.true(seen.add('m4', 4));
  seen.delete('m4');
  t.is(seen.get('m4'), undefined);
});
