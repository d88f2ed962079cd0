import test from 'ava';
import { openStreams, startPrograms } from '../../../bench/gateway/streams.ts';
import { tempDir } from '../../support/temp.ts';

/** `npm run bench -- streams` opens ten thousand, which takes half a minute. */
const STREAMS = 2_000;
const MOST_BYTES = 128 * 1024;

test('[G23] thousands of streams are open at once, each hears its upstream, calls go on beside them, and all end with their clients', async (t) => {
  t.timeout(180_000);
  const { stop, ...parts } = await startPrograms(tempDir(t));
  t.teardown(stop);
  const told = await openStreams(parts, STREAMS);
  t.log(`${Math.round(told.bytesEach)} bytes each`);
  t.true(told.bytesEach < MOST_BYTES, `${Math.round(told.bytesEach)} bytes each`);
  t.true(told.meanwhile.calls > 0);
  t.is(told.meanwhile.failed, 0);
});
