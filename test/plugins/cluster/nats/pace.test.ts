import test from 'ava';
import { Pace } from '../../../../src/plugins/cluster/nats/pace.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const KIB = 1024;

test('[C13] less is on its way at once while it comes slowly, and more when it comes in time', async (t) => {
  const clock = new VirtualClock();
  const pace = new Pace(clock);
  const passes = async (ms: number) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    pace.measure(promise);
    await clock.advance(ms);
    resolve();
    await clock.advance(0);
  };
  t.is(pace.bytes, 128 * KIB);
  await passes(250);
  t.is(pace.bytes, 160 * KIB);
  await passes(251);
  t.is(pace.bytes, 80 * KIB);
  for (let i = 0; i < 20; i += 1) await passes(251);
  t.is(pace.bytes, 64 * KIB);
  for (let i = 0; i < 300; i += 1) await passes(10);
  t.is(pace.bytes, 8 * KIB * KIB);
  pace.measure(Promise.reject(new Error('there is no leader')));
  await clock.advance(5_000);
  t.is(pace.bytes, 8 * KIB * KIB);
});
